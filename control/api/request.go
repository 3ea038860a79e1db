package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const maxBody = 4096 // bytes of a request

// request is a request, with the values of its parameters.
type request struct {
	*http.Request
	to         http.ResponseWriter
	parameters map[string]any // those that are given, as their forms read them
}

// get is the value of a parameter; the zero T if it isn't given.
func get[T any](r *request, name string) (value T) {
	value, _ = r.parameters[name].(T)
	return value
}

// readQuery reads the parameters of a request, each at most once.
func (o *operation) readQuery(r *http.Request) (map[string]any, error) {
	given, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, failed(http.StatusBadRequest, "the query: %v; expected key=value, joined by &", err)
	}
	values, known := map[string]any{}, []string{}
	for i := range o.parameters {
		p := &o.parameters[i]
		known = append(known, p.name)
		texts := given[p.name]
		delete(given, p.name)
		switch {
		case len(texts) > 1:
			return nil, failed(http.StatusBadRequest, "%s is given %d times; expected once", p.name, len(texts))
		case len(texts) == 1, p.required && p.expected != "":
			text := strings.Join(texts, "")
			value, ok := p.read(text)
			if !ok {
				return nil, failed(http.StatusBadRequest, "%s is %.50q; expected %s", p.name, text, p.expected)
			}
			values[p.name] = value
		}
	}
	for key := range given {
		return nil, failed(http.StatusBadRequest, "no parameter %.50q at %s %s; expected %s", key, r.Method, r.URL.Path, cmp.Or(strings.Join(known, ", "), "none"))
	}
	return values, nil
}

// body reads the body of a request, an object with these keys.
func (r *request) body(expected string, keys ...string) (map[string]string, error) {
	values, err := flatObject(http.MaxBytesReader(r.to, r.Body, maxBody), keys)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, failed(http.StatusRequestEntityTooLarge, "the body is longer than %d bytes; expected %s", maxBody, expected)
	case err != nil:
		return nil, failed(http.StatusBadRequest, "the body: %w; expected %s", err, expected)
	}
	return values, nil
}

// flatObject reads one JSON object with these keys, each at most once: numbers for QPs, strings for the others.
func flatObject(body io.Reader, keys []string) (map[string]string, error) {
	d := json.NewDecoder(body)
	d.UseNumber()
	t, err := d.Token()
	if err != nil {
		return nil, cut(err)
	}
	if t != json.Delim('{') {
		return nil, fmt.Errorf("it is %v, not an object", t)
	}
	values := map[string]string{}
	for d.More() {
		if err := member(d, keys, values); err != nil {
			return nil, cut(err)
		}
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return nil, cut(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("there is text after the object")
		}
		return nil, err
	}
	return values, nil
}

func member(d *json.Decoder, keys []string, values map[string]string) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	key, _ := t.(string) // the decoder accepts only strings as an object's keys
	if !slices.Contains(keys, key) {
		return fmt.Errorf("unknown key %.50q; known here: %s", key, strings.Join(keys, ", "))
	}
	if _, twice := values[key]; twice {
		return fmt.Errorf("%s is given twice", key)
	}
	if t, err = d.Token(); err != nil {
		return err
	}
	isQP := strings.HasSuffix(key, "_qp")
	switch v := t.(type) {
	case string:
		if !isQP {
			values[key] = v
			return nil
		}
	case json.Number:
		if isQP {
			values[key] = v.String()
			return nil
		}
	}
	if isQP {
		return fmt.Errorf("%s is not a number", key)
	}
	return fmt.Errorf("%s is not a string", key)
}

// cut replaces the error of the end of the input by a clear one.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends too early")
	}
	return err
}
