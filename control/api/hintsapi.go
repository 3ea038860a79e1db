package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/cnpgate/cnpgate/control/config"
)

const maxBody = 4096 // octets of a request

// Hint is a host agent's word that two QPs are connected. Like an entry of qp_map it says the same of both directions.
type Hint struct {
	Source        netip.Addr `json:"source"`
	Destination   netip.Addr `json:"destination"`
	SourceQP      uint32     `json:"source_qp"`
	DestinationQP uint32     `json:"destination_qp"`
}

type hintsBody struct {
	Hints    []Hint `json:"hints"`
	Capacity int    `json:"capacity"`
}

type putBody struct {
	Hint     Hint   `json:"hint"`
	Replaced []Hint `json:"replaced"` // hints that it contradicts, and that are gone
}

type deletedBody struct {
	Deleted Hint `json:"deleted"`
}

func makeHints(pairs []config.QPPair) []Hint {
	all := make([]Hint, len(pairs))
	for i, p := range pairs {
		all[i] = Hint(p)
	}
	return all
}

func (s *Server) getHints(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r, nil); err != nil {
		return err
	}
	answer(w, http.StatusOK, hintsBody{makeHints(s.hints.list()), maxHints})
	return nil
}

// putHint is idempotent: 201 for a hint that is new, 200 for one that is there.
func (s *Server) putHint(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r, nil); err != nil {
		return err
	}
	values, err := flatObject(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return failed(http.StatusRequestEntityTooLarge, "the body is longer than %d octets; expected %s", maxBody, hintExpected)
		}
		return failed(http.StatusBadRequest, "the body: %w; expected %s", err, hintExpected)
	}
	p, err := config.ParseQPPair(values)
	if err != nil {
		return failed(http.StatusBadRequest, "%w", err)
	}
	replaced, created, err := s.hints.put(p)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	answer(w, status, putBody{Hint(p), makeHints(replaced)})
	return nil
}

// deleteHint takes the hint of a connection back that the query names.
func (s *Server) deleteHint(w http.ResponseWriter, r *http.Request) error {
	values, err := query(r, config.QPPairKeys)
	if err != nil {
		return err
	}
	p, err := config.ParseQPPair(values)
	if err != nil {
		return failed(http.StatusBadRequest, "the query: %w", err)
	}
	if !s.hints.delete(p) {
		return failed(http.StatusNotFound, "no hint that QP %d at %s is connected to QP %d at %s; GET %s lists them",
			p.SourceQP, p.Source, p.DestinationQP, p.Destination, hintsPath)
	}
	answer(w, http.StatusOK, deletedBody{Hint(p)})
	return nil
}

var hintExpected = `one JSON object, such as {"source":"10.1.0.1","destination":"10.2.0.1","source_qp":17,"destination_qp":18}`

// flatObject reads one JSON object with the keys of a QP pair, each once: texts for addresses, numbers for QPs.
func flatObject(body io.Reader) (map[string]string, error) {
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
		if err := member(d, values); err != nil {
			return nil, cut(err)
		}
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return nil, cut(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("something follows the object")
		}
		return nil, err
	}
	return values, nil
}

func member(d *json.Decoder, values map[string]string) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	key, _ := t.(string) // in an object the decoder takes nothing else for a key
	if !slices.Contains(config.QPPairKeys, key) {
		return fmt.Errorf("unknown key %.50q; known here: %s", key, strings.Join(config.QPPairKeys, ", "))
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
	return fmt.Errorf("%s is not a text", key)
}

// cut makes the end of the input an error that says so.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends too early")
	}
	return err
}
