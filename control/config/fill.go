package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/prefix"
	"github.com/cnpgate/cnpgate/ratelimit"
)

// fill writes the values of a section into the struct that uses them. A value goes to the field of the same name, or to the one that the tag "to"
// names; a section to the struct there, a list of sections to a slice of structs. A pointer to a struct stays nil unless the file has the section.
// A section without such a struct belongs to the one around it, and only its tags count. What is absent and has no default leaves the field as it is.
func fill(to, section any) {
	fillSection(reflect.ValueOf(to).Elem(), reflect.ValueOf(section).Elem(), true)
}

// filler is a scalar or a list.
type filler interface {
	Valid() bool
	fill(to reflect.Value, rl rule)
}

// fillSection fills a struct from a section; names: fields of the same name count too.
func fillSection(to, section reflect.Value, names bool) {
	for _, f := range fieldsOf(section.Type()) {
		v := section.Field(f.index).Addr().Interface()
		target := targetOf(to, section.Type().Field(f.index).Name, f.rule.to, names)
		switch x := v.(type) {
		case filler:
			if target.IsValid() {
				x.fill(target, f.rule)
			}
		case reader: // a table, whose entries have no place in a struct
		case interface{ Given() bool }:
			from := section.Field(f.index)
			switch {
			case !target.IsValid():
				fillSection(to, from, false)
			case target.Kind() == reflect.Pointer && target.IsNil():
				if x.Given() {
					target.Set(reflect.New(target.Type().Elem()))
					fillSection(target.Elem(), from, true)
				}
			default:
				fillSection(reflect.Indirect(target), from, true)
			}
		}
	}
}

// targetOf is the field that a key's value goes to; the zero Value if it goes nowhere. tag is a path of fields, with dots, or "-" for none.
func targetOf(to reflect.Value, name, tag string, names bool) reflect.Value {
	switch {
	case tag == "-", tag == "" && !names:
		return reflect.Value{}
	case tag == "":
		return to.FieldByName(name)
	}
	for part := range strings.SplitSeq(tag, ".") {
		to = reflect.Indirect(to).FieldByName(part)
	}
	if !to.IsValid() {
		panic("config: no field " + tag)
	}
	return to
}

func (s *scalar[T, K]) fill(to reflect.Value, rl rule) {
	if !s.valid && !s.given {
		return
	}
	switch t := to.Addr().Interface().(type) {
	case *packet.Addr:
		if s.valid {
			*t = packet.AddrFrom(any(s.V).(netip.Addr))
		}
	case *ratelimit.Rate:
		*t = ratelimit.PerSecond(any(s.V).(uint64))
	case *bool:
		*t = any(s.V) == any(true) || any(s.V) == any(1) // the second of two words
	case *string:
		*t = s.text(rl)
	default:
		to.Set(reflect.ValueOf(s.V).Convert(to.Type()))
	}
}

// text is the value of a scalar, of a choice the word.
func (s *scalar[T, K]) text(rl rule) string {
	if word, ok := any(s.V).(int); ok {
		return rl.one[word]
	}
	return fmt.Sprint(s.V)
}

func (l *list[T]) fill(to reflect.Value, rl rule) {
	if set, ok := to.Addr().Interface().(**prefix.Table[struct{}]); ok {
		var prefixes []netip.Prefix
		if l.fill(reflect.ValueOf(&prefixes).Elem(), rl); len(prefixes) > 0 {
			*set = prefix.Set(prefixes)
		}
		return
	}
	for i := range l.Items {
		item := reflect.New(to.Type().Elem()).Elem()
		switch x := any(&l.Items[i]).(type) {
		case filler:
			if !x.Valid() {
				continue
			}
			x.fill(item, rl)
		default:
			fillSection(item, reflect.ValueOf(x).Elem(), true)
		}
		to.Set(reflect.Append(to, item))
	}
}

// prefixesOf are the valid prefixes of a list.
func prefixesOf(l *list[cidr]) (all []netip.Prefix) {
	l.fill(reflect.ValueOf(&all).Elem(), rule{})
	return all
}
