package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const maxBody = 4096 // bytes of a request

// request is a request, with the parameters of its query. The methods that read parameters return the zero value for one that isn't given or is wrong, and
// err has the first mistake.
type request struct {
	*http.Request
	to         http.ResponseWriter
	parameters map[string]string
	err        error
}

// readQuery reads the parameters of a request, each at most once.
func (o *operation) readQuery(r *http.Request) (map[string]string, error) {
	given, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, failed(http.StatusBadRequest, "the query: %v; expected key=value, joined by &", err)
	}
	var known []string
	for i := range o.parameters {
		known = append(known, o.parameters[i].name)
	}
	values := map[string]string{}
	for key, all := range given {
		if !slices.Contains(known, key) {
			if known == nil {
				known = []string{"none"}
			}
			return nil, failed(http.StatusBadRequest, "no parameter %.50q at %s %s; expected %s", key, r.Method, r.URL.Path, strings.Join(known, ", "))
		}
		if len(all) != 1 {
			return nil, failed(http.StatusBadRequest, "%s is given %d times; expected once", key, len(all))
		}
		values[key] = all[0]
	}
	return values, nil
}

// wrong notes that a parameter isn't what was expected.
func (r *request) wrong(key, expected string, args ...any) {
	if r.err == nil {
		r.err = failed(http.StatusBadRequest, "%s is %.50q; expected %s", key, r.parameters[key], fmt.Sprintf(expected, args...))
	}
}

func (r *request) word(key string, words []string) string {
	text, given := r.parameters[key]
	if given && !slices.Contains(words, text) {
		r.wrong(key, "%s", strings.Join(words, ", "))
		return ""
	}
	return text
}

func (r *request) truth(key string) bool {
	text, given := r.parameters[key]
	yes, err := strconv.ParseBool(text)
	if given && err != nil {
		r.wrong(key, "true or false")
	}
	return yes
}

// number is a number from 1 to most.
func (r *request) number(key string, most uint64, expected string) uint64 {
	text, given := r.parameters[key]
	n, err := strconv.ParseUint(text, 10, 64)
	if given && (err != nil || n < 1 || n > most) {
		r.wrong(key, expected, most)
	}
	return n
}

func (r *request) time(key string, least, most time.Duration, example string) time.Duration {
	text, given := r.parameters[key]
	if !given {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		r.wrong(key, "a time from %v to %v, %s", least, most, example)
	}
	return d
}

// qp is a QP; nil: it isn't given.
func (r *request) qp(key string) *uint32 {
	text, given := r.parameters[key]
	if !given {
		return nil
	}
	n, err := strconv.ParseUint(text, 0, 24)
	if err != nil {
		r.wrong(key, "a QP, 0 to 16777215")
	}
	qp := uint32(n)
	return &qp
}

// host is an address, which has to be given.
func (r *request) host(key string) netip.Addr {
	a, err := netip.ParseAddr(r.parameters[key])
	if err != nil || a.Zone() != "" {
		r.wrong(key, "an address, such as 10.1.0.1")
	}
	return a.Unmap()
}

// hosts is a prefix, or an address alone; not valid if it isn't given.
func (r *request) hosts(key string) netip.Prefix {
	text, given := r.parameters[key]
	if !given {
		return netip.Prefix{}
	}
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen())
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		r.wrong(key, "an address or a prefix, such as 10.1.0.1 or 10.1.0.0/16")
	}
	return p.Masked()
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
