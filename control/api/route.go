package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The resources.
const (
	healthPath = "/v1/health"
	flowsPath  = "/v1/flows"
	hintsPath  = "/v1/hints"
)

// failure is an error with its HTTP status.
type failure struct {
	status int
	err    error
}

func (f *failure) Error() string { return f.err.Error() }

func failed(status int, format string, args ...any) error {
	return &failure{status, fmt.Errorf(format, args...)}
}

// errorBody is what every answer but 200 and 201 has.
type errorBody struct {
	Error string `json:"error"`
}

// action answers a request, or returns what was wrong with it before anything is answered.
type action func(http.ResponseWriter, *http.Request) error

func (s *Server) handler() http.Handler {
	resources := map[string]map[string]action{
		healthPath: {http.MethodGet: s.getHealth},
		flowsPath:  {http.MethodGet: s.getFlows},
		hintsPath:  {http.MethodGet: s.getHints, http.MethodPut: s.putHint, http.MethodDelete: s.deleteHint},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := route(resources, w, r); err != nil {
			answerError(w, err)
		}
	})
}

func route(resources map[string]map[string]action, w http.ResponseWriter, r *http.Request) error {
	methods, ok := resources[r.URL.Path]
	if !ok {
		return failed(http.StatusNotFound, "no resource %.100q; expected %s, %s or %s", r.URL.Path, flowsPath, hintsPath, healthPath)
	}
	act, ok := methods[r.Method]
	if !ok {
		names := make([]string, 0, len(methods))
		for m := range methods {
			names = append(names, m)
		}
		slices.Sort(names)
		w.Header().Set("Allow", strings.Join(names, ", "))
		return failed(http.StatusMethodNotAllowed, "no method %.20q at %s; expected %s", r.Method, r.URL.Path, strings.Join(names, " or "))
	}
	return act(w, r)
}

func answerError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var f *failure
	if errors.As(err, &f) {
		status = f.status
	}
	answer(w, status, errorBody{err.Error()})
}

// answer writes a whole answer.
func answer(w http.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err) // bodies are structs of texts and numbers; the server closes the connection
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // a client that is gone needs no answer
}

// keepGoing gives a long answer that is taken piece by piece its time for the next one. The deadline for the request must move too: once
// it passes, the request counts as given up.
func keepGoing(w http.ResponseWriter) {
	c, deadline := http.NewResponseController(w), time.Now().Add(pieceTime)
	_ = c.SetWriteDeadline(deadline) // a connection without deadlines has none to move
	_ = c.SetReadDeadline(deadline)
}

// query reads a request's parameters, each at most once.
func query(r *http.Request, known []string) (map[string]string, error) {
	values := map[string]string{}
	parsed, err := parseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	for key, all := range parsed {
		if len(known) == 0 {
			return nil, failed(http.StatusBadRequest, "no parameter %.50q at %s %s; expected none", key, r.Method, r.URL.Path)
		}
		if !slices.Contains(known, key) {
			return nil, failed(http.StatusBadRequest, "no parameter %.50q at %s; expected %s", key, r.URL.Path, strings.Join(known, ", "))
		}
		if len(all) != 1 {
			return nil, failed(http.StatusBadRequest, "%s is given %d times; expected once", key, len(all))
		}
		values[key] = all[0]
	}
	return values, nil
}
