// Package yamldoc reads YAML documents strictly, by a schema: a mistake has its line and column, the key that may be meant, and what was
// expected. A gateway's configuration and a simulator's scenario are such documents.
//
// A section of a document is a Go struct. Its fields are of the types that the program uses, and their tags say the rest:
//
//	key       the key's name; fields without it are not read
//	form      the form of the value, if it doesn't follow from the field's type: see Forms
//	required  "yes": must be given; "given": must be given if its section is
//	default   the value of an absent key, as the file would have it
//	min, max  bounds of a value, or of each value in a list
//	items     least number of entries in a list; most: greatest
//	one       the words a choice takes; the field gets the word, its number, or whether it is the second one
//	unique    what an error calls a value that two entries of a list have; % is the value
//	expects   what to write, if the form doesn't say enough
//	with      another key of the section, without which this one isn't given
//	without   another key of the section, with which this one isn't given
//	mode      the mode that the key is for, see Node.GivenIn and Dump
//	absent    "off": without the section the program doesn't do what it is about, so that its defaults don't apply
//	because   why a change of the key, and of keys below it without this tag, needs a restart
//	removed   what to do about a key that an earlier version had, of a field _; the tag key is its name
//	reload    what a change of the key, and of keys below it without this tag, needs: live, resize or restart; see Reload
//
// A pointer to a section stays nil unless the document has the section.
//
// One walk over the structs (Document.Decode) reads the document, and makes a Node of each key, given or not. All else is made of the nodes:
// Compare and the reload class of a change, Dump, Find. JSONSchema is made of the structs alone. Rules between keys are the caller's: it asks
// for the node of a value by the value's address, so that an error has its place: d.Problem(&s.Rate, "is above ...").
package yamldoc

import (
	"fmt"
	"reflect"
	"strconv"

	"gopkg.in/yaml.v3"
)

// Node is a key's value, an item of a list or an entry of a table.
type Node struct {
	Path         string  // such as ports[1].rate
	Line, Column int     // of the value; of the section around it if the value is not given; 0: the whole file
	Given        bool    // written in the file
	Valid        bool    // usable: given and valid, or a default
	Twice        bool    // an earlier entry of the list has the same value
	Written      string  // a scalar as in the file, or the default
	Parts        []*Node // the keys of a section in the order of the schema, the items of a list, the entries of a table

	key    string // in the section or table; "" of an item
	rule   *rule
	target reflect.Value // what it is read to
	value  any           // of a scalar
}

// Value is a pointer to the section, list, table or scalar that the node is about.
func (n *Node) Value() any { return n.target.Addr().Interface() }

// Key is the key in the section or the table around it, "" of an item of a list.
func (n *Node) Key() string { return n.key }

// Table is a mapping with names of the operator's choice as keys.
type Table[T any] struct {
	Names   []string
	Entries []T
}

// Embedded is a section that has a schema of its own, such as a gateway's configuration in a scenario.
type Embedded struct{ Node *yaml.Node } // nil where it isn't given

// Document is a document that is being read.
type Document struct {
	report
	forms Forms
	Root  *yaml.Node    // of the text
	nodes map[any]*Node // by address of the value
}

// Parse parses YAML. name is the file's name in errors, needs the sections that it must have, forms are those that Forms doesn't have.
func Parse(name, needs string, data []byte, forms Forms) (*Document, error) {
	d := New(name, forms)
	d.Root = d.parse(data, needs)
	return d, d.Err()
}

// New is a document without text, to decode nodes of.
func New(name string, forms Forms) *Document {
	return &Document{report: report{file: name}, forms: forms, nodes: map[any]*Node{}}
}

// Again is the document without its mistakes, for others that are found later.
func (d *Document) Again() *Document {
	return &Document{report{file: d.file}, d.forms, d.Root, d.nodes}
}

// Embedded is a document that is part of another, so far without text.
func (d *Document) Embedded() *Document { return New(d.file, d.forms) }

// Join adds an embedded document's mistakes.
func (d *Document) Join(e *Document) {
	d.problems, d.omitted = append(d.problems, e.problems...), d.omitted+e.omitted
}

// Decode reads the document into a section, a pointer to a struct. Mistakes are noted; see Err.
func (d *Document) Decode(section any) *Node { return d.DecodeNode(section, d.Root, "") }

// DecodeNode reads a part of a document at a path. Without a node, the section has its defaults.
func (d *Document) DecodeNode(section any, y *yaml.Node, path string) *Node {
	n := d.register(&Node{Path: path, rule: &rule{}, target: reflect.ValueOf(section).Elem()})
	if y == nil {
		d.section(n, nil)
	} else {
		d.value(n, y)
	}
	return n
}

func (d *Document) register(n *Node) *Node {
	d.nodes[n.Value()] = n
	return n
}

// part makes the node of a part of another.
func (d *Document) part(of *Node, key, path string, target reflect.Value, rl *rule) *Node {
	n := &Node{Path: path, Line: of.Line, Column: of.Column, key: key, rule: rl, target: target}
	if target.Kind() == reflect.Pointer {
		d.nodes[target.Addr().Interface()] = n
		n.target = reflect.New(target.Type().Elem()).Elem()
	}
	of.Parts = append(of.Parts, d.register(n))
	return n
}

// At is the node of the value at an address; a node is its own.
func (d *Document) At(address any) *Node {
	if n, ok := address.(*Node); ok {
		return n
	}
	n := d.nodes[address]
	if n == nil {
		panic(fmt.Sprintf("yamldoc: no key has this %T", address))
	}
	return n
}

// Given reports whether the document has the value at an address.
func (d *Document) Given(address any) bool { return d.At(address).Given }

// Valid reports whether the value at an address is usable.
func (d *Document) Valid(address any) bool { return d.At(address).Valid }

// Problem notes a mistake at the value at an address.
func (d *Document) Problem(address any, format string, args ...any) {
	d.problem(d.At(address), format, args...)
}

// Warn notes a warning at the value at an address.
func (d *Document) Warn(address any, format string, args ...any) {
	d.warnings = append(d.warnings, d.found(d.At(address), format, args...))
}

// Position is where the value at an address is.
func (d *Document) Position(address any) Position { return d.position(d.At(address)) }

// In is the position in parentheses, "" if the values are not in a file.
func (d *Document) In(address any) string {
	if d.file == "" {
		return ""
	}
	return " (" + d.Position(address).String() + ")"
}

// Expects is the form of a valid value at an address.
func (d *Document) Expects(address any) string { return d.expects(d.At(address)) }

// Unique reports a value that an earlier entry has already, and returns false for it. seen has the nodes of the earlier entries.
func Unique[K comparable](d *Document, seen map[K]*Node, key K, address any, what string) bool {
	n := d.At(address)
	if first := seen[key]; first != nil {
		d.problem(n, "%s is given twice; %s at %s also has it", what, first.Path, d.position(first))
		return false
	}
	seen[key] = n
	return true
}

// rule has the rules for a value in its field's tags.
type rule struct {
	form, required, def, min, max string
	one                           []string
	items, most                   int
	unique, expects               string
	with, without                 string
	mode                          string
	off                           bool
	needs                         Needs // what the field's tags say
}

// field is one key of a section.
type field struct {
	key   string
	index int
	of    reflect.Type
	rule  *rule
}

// shape is what a value consists of.
type shape uint8

const (
	section shape = iota
	scalar
	list
	table
	embedded
)

// shapeOf is the shape of the values of a type.
func shapeOf(t reflect.Type) shape {
	switch {
	case t == reflect.TypeFor[Embedded]():
		return embedded
	case t.Kind() == reflect.Slice:
		return list
	case t.Kind() == reflect.Pointer:
		return shapeOf(t.Elem())
	case t.Kind() != reflect.Struct || t.PkgPath() == "net/netip":
		return scalar
	case t.NumField() == 2 && t.Field(1).Name == "Entries":
		return table
	}
	return section
}

func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

func child(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
