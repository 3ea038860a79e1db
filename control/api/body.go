package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

const maxBody = 4096 // bytes of a request

// readBody reads the body of a request, an object with these keys.
func readBody(w http.ResponseWriter, r *http.Request, expected string, keys ...string) (map[string]string, error) {
	values, err := flatObject(http.MaxBytesReader(w, r.Body, maxBody), keys)
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
