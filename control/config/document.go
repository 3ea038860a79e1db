package config

import (
	"reflect"
	"time"

	"gopkg.in/yaml.v3"
)

// The decoder of configurations also reads other documents: strictly, with positions, and with defaults and bounds from the tags of a schema
// (explained in schema.go). A document is a struct that embeds Section, with fields of the types below and of structs of the same kind.

// Section is embedded in each section of a document.
type Section = place

// Text is a value of a document, like the types below: V is the value, Given reports whether the file has it, Valid whether it may be used.
type Text = scalar[string, textKind]

// Name is letters, digits, '.', '_' and '-'.
type Name = scalar[string, nameKind]

// Toggle is true or false.
type Toggle = scalar[bool, toggleKind]

// Integer is a whole number.
type Integer = scalar[int64, integerKind]

// Decimal is a number in millionths.
type Decimal = scalar[uint64, decimalKind]

// Choice is the index of a word among those of the tag "one".
type Choice = scalar[int, choiceKind]

// Size is a number of bytes.
type Size = scalar[uint64, sizeKind]

// Rate is a number of bits a second.
type Rate = scalar[uint64, rateKind]

// Duration is a time.
type Duration = scalar[time.Duration, durationKind]

// List is a list of values or sections.
type List[T any] = list[T]

// Table is a mapping with names of the operator's choice as keys.
type Table[T any] = table[T]

// Given reports whether the file has the value.
func (p place) Given() bool { return p.given }

// Valid reports whether the value is usable: given and valid, or a default.
func (p place) Valid() bool { return p.valid }

// At is the position of the value, for Problem.
func (p place) At() Section { return p }

// Embedded is a section that has a schema of its own, such as a gateway's configuration.
type Embedded struct {
	place
	Node *yaml.Node // nil where it isn't given
}

func (e *Embedded) read(r *decoder, n *yaml.Node, at place, rl rule) {
	e.place = at
	if n.Kind != yaml.MappingNode {
		r.mismatch(n, at, rl, e.expects(rl))
		return
	}
	e.Node, e.valid = n, true
}

func (e *Embedded) absent(_ *decoder, at place, _ rule) { e.place = at }

func (e *Embedded) expects(rule) string { return "keys with values" }

// Document is a document that is being read.
type Document struct {
	decoder
	Root *yaml.Node
}

// ParseDocument reads YAML. name is the file's name in errors, needs the sections that it must have.
func ParseDocument(name, needs string, data []byte) (*Document, error) {
	d := &Document{decoder: decoder{&report{file: name, needs: needs}}}
	d.Root = d.parseYAML(data)
	return d, d.err()
}

// Decode fills in a document, a pointer to a struct that embeds Section. Mistakes are noted; see Err.
func (d *Document) Decode(document any) {
	d.value(reflect.ValueOf(document).Elem(), d.Root, place{}, rule{})
}

// Problem notes a mistake at a value.
func (d *Document) Problem(at Section, format string, args ...any) { d.problem(at, format, args...) }

// UnknownName notes a reference to a name that doesn't exist. what is the kind of thing it should name, names are the existing ones.
func (d *Document) UnknownName(at Section, text, what string, names []string) {
	d.unknownName(at, text, what, names)
}

// Err is an *Error with all noted mistakes, nil without mistakes.
func (d *Document) Err() error { return d.err() }

// Configuration reads a gateway's configuration that is part of the document. It notes mistakes, and then returns nil.
func (d *Document) Configuration(e *Embedded) *Config {
	doc, before := &document{}, len(d.problems)
	d.value(reflect.ValueOf(doc).Elem(), e.Node, e.place, rule{})
	cfg := (&resolver{d.report, doc}).resolve()
	if len(d.problems) > before {
		return nil
	}
	return cfg
}
