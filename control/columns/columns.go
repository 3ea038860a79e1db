// Package columns makes tables of types: what people read of a subject, such as flows, follows from one description, the fields of a Go type.
//
//	RateBPS *uint64 `json:"rate_bps" doc:"Rate of its flows, bit/s." column:"RATE,Rate,rate,4"`
//
// json and doc give the API's JSON and OpenAPI document. column has the name in text (in lower case the word of --sort and --columns), the title on the page, the Form, and the
// order in which a narrow output leaves columns out, from 1. Each may be missing: without a name, the column is on the page only, and the reverse. From that
// follow the text of cnpgate show and top, the lists of columns in the commands' help, and the tables of the page, which writes the same members by the same forms
// (web/src/live/columns.js). Counters follow from the catalogue of package telemetry in the same way, in text, metrics and log.
//
// So a new column is a field of the type.
package columns

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnpgate/cnpgate/internal/units"
)

// Form is how a member is written.
type Form string

// The forms. A member that is null, empty or left out is written "-".
const (
	Text     Form = ""         // as it is; a list with commas; a truth as yes or no
	Long     Form = "long"     // a text that gets a line of its own where the table is too wide
	Count    Form = "count"    // a number of something
	ID       Form = "id"       // a number that is a name
	Bytes    Form = "bytes"    // a size
	Rate     Form = "rate"     // bit/s
	PPS      Form = "pps"      // packets a second
	Duration Form = "duration" // ns
	Percent  Form = "percent"  // a part of 1
	Host     Form = "host"     // an IP address
	SourceQP Form = "qp"       // a source QP, or candidate_qp with a question mark
	Place    Form = "place"    // the tunnel, if there is one, and the VLANs: the row's vlan, tunnel and tunnel_id
	Counts   Form = "counts"   // numbers by name
	Reacts   Form = "reacts"   // "no" if it is true
	Clock    Form = "clock"    // the time of a day, in us
	Date     Form = "date"     // a time
	State    Form = "state"    // a word, good or bad
	Hash     Form = "hash"     // the first 12 digits
	Millis   Form = "ms"       // a duration in ms, 0 as "-"
	Micros   Form = "us"       // a duration in us, 0 as "-"

	// These are of rows that write such members themselves (Celler).
	Asks    Form = "asks"    // an action, with its parameter
	Outcome Form = "outcome" // with its reason
	Queue   Form = "queue"   // port/class
	Slowed  Form = "slowed"  // or at_fair_rate
)

// units of the durations, ns.
var nanoseconds = map[Form]int64{Duration: 1, Micros: 1e3, Millis: 1e6}

// Column is a member of the rows.
type Column struct {
	Name   string `json:"-"`     // in text
	Title  string `json:"title"` // on the page
	Member string `json:"member"`
	As     Form   `json:"as"`
	Least  int    `json:"-"`
	Doc    string `json:"-"` // as in the API

	text   func(row reflect.Value) string
	number func(row reflect.Value) (uint64, bool)
}

// Celler is a row that writes some columns itself, by their names.
type Celler interface {
	Cell(name string) (text string, ok bool)
}

// Table has the columns of rows of a type.
type Table[T any] struct{ columns []Column }

// New makes the table of a type. Its columns are in the order of these members, then of the fields. It panics if a member has no column.
func New[T any](order ...string) *Table[T] {
	of, t := reflect.TypeFor[T](), &Table[T]{}
	for _, f := range reflect.VisibleFields(of) {
		tag, is := f.Tag.Lookup("column")
		if !is {
			continue
		}
		parts := append(strings.Split(tag, ","), "", "", "")
		c := Column{Name: parts[0], Title: parts[1], Member: memberOf(&f), As: Form(parts[2]), Doc: cmp.Or(f.Tag.Get("doc"), Docs[memberOf(&f)])}
		c.Least, _ = strconv.Atoi(parts[3]) // an error: none
		c.text = write(of, &c)
		c.number = func(row reflect.Value) (uint64, bool) { return number(row.FieldByIndex(f.Index)) }
		t.columns = append(t.columns, c)
	}
	t.columns = inOrder(t.columns, order)
	return t
}

// inOrder are all columns, those of the members first.
func inOrder(all []Column, members []string) (ordered []Column) {
	rest := slices.Clone(all)
	for _, member := range members {
		i := slices.IndexFunc(rest, func(c Column) bool { return c.Member == member })
		if i < 0 {
			panic("there is no column " + member) // a mistake in the program
		}
		ordered, rest = append(ordered, rest[i]), slices.Delete(rest, i, i+1)
	}
	return append(ordered, rest...)
}

// memberOf is the name of a field in JSON.
func memberOf(f *reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// Text has the columns that are in text.
func (t *Table[T]) Text() []Column {
	return slices.DeleteFunc(slices.Clone(t.columns), func(c Column) bool { return c.Name == "" })
}

// Page has the columns that are on the page, in the order of these members, then of the table.
func (t *Table[T]) Page(order ...string) []Column {
	return slices.DeleteFunc(slices.Clone(inOrder(t.columns, order)), func(c Column) bool { return c.Title == "" })
}

// Names are the words for columns on the command line.
func Names(all []Column) []string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = strings.ToLower(all[i].Name)
	}
	return names
}

// jsonUnit is the unit at the end of a description in the API; text has the unit at the value.
var jsonUnit = regexp.MustCompile(`, (ns|us|ms|bit/s|RFC 3339)\.$`)

// Help is a line for each column: its name and what it has.
func Help(all []Column) string {
	var text strings.Builder
	for i := range all {
		doc := jsonUnit.ReplaceAllString(all[i].Doc, ".")
		if all[i].As == Reacts {
			doc = `"no": ` + doc
		}
		fmt.Fprintf(&text, "\n  %-18s %s", all[i].Name, doc)
	}
	return text.String()
}

// Cells are a row's texts in some columns.
func Cells[T any](columns []Column, row *T) []string {
	cells, v := make([]string, len(columns)), reflect.ValueOf(row).Elem()
	own, special := any(row).(Celler)
	for i := range columns {
		if special {
			if text, ok := own.Cell(columns[i].Name); ok {
				cells[i] = text
				continue
			}
		}
		cells[i] = columns[i].text(v)
	}
	return cells
}

// Compare orders two rows by a column: by numbers, the largest first, or by texts.
func Compare[T any](c *Column, a, b *T) int {
	va, vb := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	if x, ok := c.number(va); ok && c.As != SourceQP {
		y, _ := c.number(vb)
		return cmp.Compare(y, x)
	}
	return cmp.Compare(c.text(va), c.text(vb))
}

// write makes the function that writes a column of rows of a type.
func write(of reflect.Type, c *Column) func(row reflect.Value) string {
	member := func(name string) func(row reflect.Value) any {
		all := reflect.VisibleFields(of)
		i := slices.IndexFunc(all, func(f reflect.StructField) bool { return memberOf(&f) == name })
		if i < 0 {
			return func(reflect.Value) any { return nil }
		}
		return func(row reflect.Value) any {
			v := row.FieldByIndex(all[i].Index)
			if v.Kind() == reflect.Pointer {
				if v.IsNil() {
					return nil
				}
				v = v.Elem()
			}
			return v.Interface()
		}
	}
	value, as := member(c.Member), c.As
	switch as {
	case Place:
		kind, id := member("tunnel"), member("tunnel_id")
		return func(row reflect.Value) string {
			return PlaceText(kind(row).(string), id(row).(uint32), value(row).([]uint16))
		}
	case SourceQP:
		candidate := member("candidate_qp")
		return func(row reflect.Value) string {
			if qp := candidate(row); qp != nil {
				return fmt.Sprint(qp, "?")
			}
			return textOf(as, value(row))
		}
	}
	return func(row reflect.Value) string { return textOf(as, value(row)) }
}

// textOf writes a value that isn't a pointer.
func textOf(as Form, value any) string {
	v := reflect.ValueOf(value)
	switch n, is := number(v); {
	case value == nil, !v.IsValid():
		return "-"
	case is && as == Bytes:
		return units.Size(n)
	case is && as == Rate:
		return units.Rate(n)
	case is && as == PPS:
		return units.Packets(n)
	case is && n == 0 && (as == Millis || as == Micros):
		return "-"
	case is && nanoseconds[as] > 0:
		return Ago(int64(n) * nanoseconds[as]).String()
	}
	switch v := value.(type) {
	case float64: // of Percent
		return fmt.Sprintf("%.0f%%", 100*v)
	case bool:
		if as == Reacts {
			return map[bool]string{true: "no", false: "-"}[v]
		}
		return map[bool]string{true: "yes", false: "no"}[v]
	case string:
		if as == Hash {
			v = v[:min(len(v), 12)]
		}
		return cmp.Or(strings.ReplaceAll(v, "\n", "; "), "-")
	case []string:
		return cmp.Or(strings.Join(v, ", "), "-")
	case map[string]uint64:
		return CountsText(v)
	case map[string]int:
		return CountsText(v)
	case time.Time:
		return v.Local().Format(map[Form]string{Clock: "15:04:05.000000"}[as] + map[Form]string{Date: time.DateTime}[as])
	}
	return fmt.Sprint(value)
}

// number is the value of a number, or the sum of several.
func number(v reflect.Value) (n uint64, is bool) {
	switch {
	case v.Kind() == reflect.Pointer && v.IsNil():
		_, is = number(reflect.Zero(v.Type().Elem()))
		return 0, is
	case v.Kind() == reflect.Pointer:
		return number(v.Elem())
	case v.CanUint():
		return v.Uint(), true
	case v.CanInt():
		return uint64(max(v.Int(), 0)), true
	}
	by, is := map[string]uint64(nil), false
	if v.Kind() == reflect.Map {
		by, is = v.Interface().(map[string]uint64)
	}
	for _, one := range by {
		n += one
	}
	return n, is
}

// PlaceText is a tunnel, "" for none, and VLANs, as in vxlan:5000.7.
func PlaceText(tunnel string, id uint32, vlans []uint16) string {
	var texts []string
	if tunnel != "" {
		texts = append(texts, fmt.Sprintf("%s:%d", tunnel, id))
	}
	for _, vid := range vlans {
		texts = append(texts, fmt.Sprint(vid))
	}
	return cmp.Or(strings.Join(texts, "."), "-")
}

// CountsText lists counts by name.
func CountsText[N int | uint64](counts map[string]N) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] == 0 {
			continue
		}
		all = append(all, fmt.Sprintf("%s:%d", name, counts[name]))
	}
	return cmp.Or(strings.Join(all, ","), "-")
}

// Ago is a time in ns with three digits, or in seconds, for people.
func Ago(ns int64) time.Duration {
	d, unit := time.Duration(max(ns, 0)), time.Duration(1)
	for d/unit >= 1000 && unit < time.Second {
		unit *= 10
	}
	return d.Round(unit)
}
