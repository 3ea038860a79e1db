package webserver

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/cnpgate/cnpgate/control/replay"
)

// Diagnosis is a source for the page that shows what is wrong with the RDMA connections of a capture, which must stay open.
type Diagnosis struct {
	*replay.Diagnosis
	reading sync.Mutex // the capture is read for one request at a time
}

func (d *Diagnosis) run(ctx context.Context) { <-ctx.Done() }

func (*Diagnosis) entry() string { return "diagnose.html#report" }

func (d *Diagnosis) routes(get func(string, http.HandlerFunc)) {
	get("/diagnosis", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, d.Diagnosis) })
	get("/diagnosis/trace", d.trace)
}

// trace answers with what passed of the requests of one end, requester, of a connection of the report.
func (d *Diagnosis) trace(w http.ResponseWriter, r *http.Request) {
	connection, err := strconv.Atoi(r.URL.Query().Get("connection"))
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	requester, err := strconv.Atoi(r.URL.Query().Get("requester"))
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // to read a large capture takes longer than other answers may
	d.reading.Lock()
	defer d.reading.Unlock()
	trace, err := d.Trace(connection, requester)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	answer(w, http.StatusOK, trace)
}
