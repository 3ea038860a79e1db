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

// failure is an error with its HTTP status.
type failure struct {
	status int
	err    error
}

func (f *failure) Error() string { return f.err.Error() }

func failed(status int, format string, args ...any) error {
	return &failure{status, fmt.Errorf(format, args...)}
}

// errorBody is the answer to a request that is refused.
type errorBody struct {
	Error string `json:"error" doc:"What was wrong, what was expected, and what to do."`
}

// handler routes requests to the operations. All answers are JSON, also those for unknown paths and methods.
func (s *Server) handler(operations []operation) http.Handler {
	mux := http.NewServeMux()
	for i := range operations {
		o := &operations[i]
		mux.HandleFunc(o.method+" "+o.path, func(w http.ResponseWriter, r *http.Request) {
			parameters, err := o.readQuery(r)
			var body any
			if err == nil {
				body, err = o.act(&request{Request: r, to: w, parameters: parameters})
			}
			if err != nil {
				answerError(w, err)
			} else if with, ok := body.(reply); ok {
				answer(w, with.status, with.body)
			} else if body != nil {
				answer(w, http.StatusOK, body)
			}
		})
	}
	all := paths(operations)
	return http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		w := &statusWriter{ResponseWriter: to, status: http.StatusOK}
		defer func() {
			s.log.Debug().Str("method", r.Method).Str("path", r.URL.Path).Int("status", w.status).Msg("The API has answered a request.")
		}()
		if !slices.Contains(all, r.URL.Path) {
			answerError(w, failed(http.StatusNotFound, "no resource %.100q; expected %s", r.URL.Path, strings.Join(all, ", ")))
		} else if _, pattern := mux.Handler(r); pattern == "" {
			allowed := methods(operations, r.URL.Path)
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			answerError(w, failed(http.StatusMethodNotAllowed, "no method %.20q at %s; expected %s", r.Method, r.URL.Path, strings.Join(allowed, " or ")))
		} else {
			mux.ServeHTTP(w, r)
		}
	})
}

// reply is an answer with a status of its own.
type reply struct {
	status int
	body   any
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// methods are the methods of a path, sorted. ServeMux answers HEAD wherever there is GET.
func methods(operations []operation, path string) (all []string) {
	for i := range operations {
		if o := &operations[i]; o.path == path {
			if all = append(all, o.method); o.method == http.MethodGet {
				all = append(all, http.MethodHead)
			}
		}
	}
	slices.Sort(all)
	return all
}

func answerError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var f *failure
	if errors.As(err, &f) {
		status = f.status
	}
	answer(w, status, errorBody{err.Error()})
}

// answer writes a complete answer.
func answer(w http.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err) // can't fail: bodies are structs of strings and numbers; the server would close the connection
	}
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the client may have disconnected
}

// keepGoing extends the deadline of a long answer for its next part, but not beyond the end of the whole answer; the zero end is none. The deadline for
// reading the request must move too: once it passes, the server cancels the request.
func (r *request) keepGoing(end time.Time) {
	c, deadline := http.NewResponseController(r.to), time.Now().Add(pieceTime)
	if !end.IsZero() && end.Before(deadline) {
		deadline = end
	}
	_ = c.SetWriteDeadline(deadline) // the connection may not support deadlines
	_ = c.SetReadDeadline(deadline)
}
