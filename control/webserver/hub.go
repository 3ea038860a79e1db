package webserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	maxPages  = 16               // that get events at once
	queued    = 32               // events that wait for a page
	writeTime = 10 * time.Second // for a page to take an event
)

// event is a server-sent event. Its text is made once for all pages.
type event struct {
	kind string
	text []byte
}

// newEvent makes the event with a JSON value. Its ID is the time, ms since 1970: a page may get events late, several at once.
func newEvent(kind string, value []byte) *event {
	var line bytes.Buffer
	fmt.Fprintf(&line, "event: %s\nid: %d\ndata: ", kind, time.Now().UnixMilli())
	if json.Compact(&line, value) != nil { // an answer of the API is always JSON
		return nil
	}
	line.WriteString("\n\n")
	return &event{kind, line.Bytes()}
}

// hub gives events to all pages. A page that doesn't keep up misses some: it never makes another one wait, and holds no more than its queue.
type hub struct {
	mutex sync.Mutex
	pages map[*page]bool
	last  map[string]*event // by kind, for a page that comes
	kinds []string          // in the order in which they came first
	came  chan struct{}     // gets a value when a page has come
}

// page is a browser's.
type page struct {
	events chan *event
	missed int // guarded by hub.mutex
}

var errPages = errors.New("too many pages are open; close one, and try again")

func newHub() *hub {
	return &hub{pages: map[*page]bool{}, last: map[string]*event{}, came: make(chan struct{}, 1)}
}

// join adds a page, with the latest event of each kind.
func (h *hub) join() (*page, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if len(h.pages) >= maxPages {
		return nil, errPages
	}
	p := &page{events: make(chan *event, queued)}
	for _, kind := range h.kinds {
		if e := h.last[kind]; e != nil {
			p.events <- e // there are fewer kinds than places
		}
	}
	h.pages[p] = true
	select {
	case h.came <- struct{}{}:
	default:
	}
	return p, nil
}

func (h *hub) leave(p *page) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	delete(h.pages, p)
}

// empty reports whether no page is open.
func (h *hub) empty() bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return len(h.pages) == 0
}

// send gives an event to all pages. whole is the one that a later page gets first: the event itself, unless that only has what is new.
func (h *hub) send(e, whole *event) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if _, known := h.last[e.kind]; !known {
		h.kinds = append(h.kinds, e.kind)
	}
	h.last[e.kind] = whole
	for p := range h.pages {
		select {
		case p.events <- e:
		default:
			p.missed++
		}
	}
}

// forget forgets what later pages would get, as it isn't true any more.
func (h *hub) forget() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	clear(h.last)
}

// takeMissed is how many events a page has missed since the last call.
func (h *hub) takeMissed(p *page) (n int) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	n, p.missed = p.missed, 0
	return n
}

// serve writes events to a page until it goes, or doesn't take one in time.
func (h *hub) serve(w http.ResponseWriter, r *http.Request) {
	p, err := h.join()
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err)
		return
	}
	defer h.leave(p)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // it would end the request
	write := func(text []byte) bool {
		_ = c.SetWriteDeadline(time.Now().Add(writeTime))
		_, err := w.Write(text)
		return err == nil && c.Flush() == nil
	}
	for write(nil) {
		select {
		case <-r.Context().Done():
			return
		case e := <-p.events:
			if n := h.takeMissed(p); n > 0 && !write(newEvent("missed", strconv.AppendInt(nil, int64(n), 10)).text) {
				return
			}
			if !write(e.text) {
				return
			}
		}
	}
}
