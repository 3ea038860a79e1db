package config

import (
	"reflect"
	"strings"
)

// Fault is a key whose value can't be used on the present host.
type Fault struct {
	Key string // such as ports[0].device
	Err error
}

// Refused is an *Error with the positions of the faults in the file, nil without faults.
func (c *Config) Refused(faults []Fault) error {
	r := &report{file: c.File.Name}
	for _, f := range faults {
		at := find(reflect.ValueOf(c.document).Elem(), f.Key)
		if at == nil {
			at = &place{path: f.Key}
		}
		r.problem(*at, "%s", strings.TrimPrefix(f.Err.Error(), "dpdk: "))
	}
	return r.err()
}

// find returns the place of a key within a part of a document, nil if it isn't there.
func find(v reflect.Value, key string) *place {
	at := v.Addr().Interface().(interface{ where() *place }).where()
	if at.path == key {
		return at
	}
	if items := v.FieldByName("Items"); items.IsValid() {
		for i := range items.Len() {
			if at := find(items.Index(i), key); at != nil {
				return at
			}
		}
	}
	for _, f := range fieldsOf(v.Type()) {
		if at := find(v.Field(f.index), key); at != nil {
			return at
		}
	}
	return nil
}
