package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/cnpgate/cnpgate/control/columns"
	"github.com/cnpgate/cnpgate/telemetry"
)

const (
	schemas   = "#/components/schemas/"
	jsonType  = "application/json"
	linesType = "application/jsonl"
)

// document is the OpenAPI document of the operations, as JSON. It depends only on the program.
func document(operations []operation) ([]byte, error) {
	huma.DefaultArrayNullable = false // lists in answers are never null
	registry := huma.NewMapRegistry(schemas, huma.DefaultSchemaNamer)
	registry.RegisterTypeAlias(reflect.TypeFor[telemetry.Values](), reflect.TypeFor[valuesSchema]())
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "cnpgate", Version: "1",
			Description: "The API of a running gateway: HTTP with JSON at the Unix socket that management.listen of the configuration names.",
			License:     &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Servers:    []*huma.Server{{URL: "http://localhost", Description: "Any host name: the connection goes to the Unix socket."}},
		Components: &huma.Components{Schemas: registry},
	}
	for i := range operations {
		doc.AddOperation(operations[i].describe(registry))
	}
	for _, s := range registry.Map() {
		plainIntegers(s)
		describeMembers(s)
	}
	compact, err := doc.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, compact, "", "  "); err != nil {
		return nil, err
	}
	text.WriteByte('\n')
	return text.Bytes(), nil
}

// describe is the operation as OpenAPI describes it.
func (o *operation) describe(registry huma.Registry) *huma.Operation {
	d := &huma.Operation{Method: o.method, Path: o.path, OperationID: o.id, Summary: o.summary, Responses: map[string]*huma.Response{}}
	content := func(of any, media string) map[string]*huma.MediaType {
		return map[string]*huma.MediaType{media: {Schema: registry.Schema(reflect.TypeOf(of), true, "")}}
	}
	for _, p := range o.parameters {
		d.Parameters = append(d.Parameters, &huma.Param{Name: p.name, In: "query", Description: p.description, Required: p.required, Schema: p.schema})
	}
	if o.body != nil {
		d.RequestBody = &huma.RequestBody{Required: true, Content: content(o.body, jsonType)}
	}
	answerType := jsonType
	if o.lines {
		answerType = linesType
	}
	for status, of := range o.answers {
		d.Responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status), Content: content(of, answerType)}
	}
	for status, when := range o.errors {
		d.Responses[strconv.Itoa(status)] = &huma.Response{Description: when, Content: content(errorBody{}, jsonType)}
	}
	d.Responses["400"] = &huma.Response{Description: "The request is malformed.", Content: content(errorBody{}, jsonType)}
	d.Responses["default"] = &huma.Response{Description: "Another error.", Content: content(errorBody{}, jsonType)}
	return d
}

func (s *Server) serveDocument(r *request) (any, error) {
	r.to.Header().Set("Content-Type", jsonType)
	_, _ = r.to.Write(s.document) // the client may have disconnected
	return nil, nil
}

// describeMembers adds the common descriptions to members without one of their own.
func describeMembers(s *huma.Schema) {
	for name, p := range s.Properties {
		if p.Description == "" && p.Ref == "" {
			p.Description = columns.Docs[name]
		}
	}
}

// plainIntegers removes the formats that huma gives unsigned integers: OpenAPI has only int32 and int64, which some values exceed.
func plainIntegers(s *huma.Schema) {
	if s == nil {
		return
	}
	if s.Type == huma.TypeInteger {
		s.Format = ""
	}
	plainIntegers(s.Items)
	for _, p := range s.Properties {
		plainIntegers(p)
	}
	if values, ok := s.AdditionalProperties.(*huma.Schema); ok {
		plainIntegers(values)
	}
}

// valuesSchema describes telemetry.Values: the metrics of the catalogue.
type valuesSchema struct{}

// Schema implements huma.SchemaProvider.
func (valuesSchema) Schema(r huma.Registry) *huma.Schema {
	const name = "Values"
	if r.Map()[name] == nil {
		all := &huma.Schema{Type: huma.TypeObject, Description: "Metrics by name. One with a label is an object with a value for each value of the label.",
			AdditionalProperties: false, Properties: map[string]*huma.Schema{}}
		for _, m := range telemetry.All() {
			s := &huma.Schema{Type: huma.TypeInteger, Minimum: bound(0)}
			if m.Label != "" {
				s = &huma.Schema{Type: huma.TypeObject, AdditionalProperties: s}
			}
			s.Description = m.Help
			all.Properties[m.Name] = s
		}
		r.Map()[name] = all
	}
	return &huma.Schema{Ref: schemas + name}
}

// paths are the paths of all operations, sorted.
func paths(operations []operation) []string {
	var all []string
	for i := range operations {
		all = append(all, operations[i].path)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
