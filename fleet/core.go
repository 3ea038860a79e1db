package fleet

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cnpgate/cnpgate/fleet/wire"
)

// core is what the parts of a Member have in common: the configuration, the time, the counts, and how they send.
type core struct {
	Config
	sequence uint64
	now      int64
	stats    Stats
}

// send seals a body and gives it to the bus. to is "" for all.
func (c *core) send(k wire.Kind, to string, body []byte) {
	subject := Subject(c.Site, c.Name, k)
	if to != "" {
		subject = SubjectTo(c.Site, c.Name, k, to)
	}
	c.sequence++
	b, err := wire.Seal(c.Site, wire.Header{Kind: k, Sender: c.Name, Sequence: c.sequence, Time: c.now}, body, c.Sign)
	if err != nil {
		c.stats.Refused["not built"]++
		return
	}
	c.stats.Sent[k]++
	c.stats.SentBytes += uint64(len(b))
	c.Send(subject, b)
}

// sendRecords sends records in messages of at most chunk bytes.
func (c *core) sendRecords(k wire.Kind, to string, b []byte, size int) {
	for len(b) > 0 {
		n := min(len(b), chunk/size*size)
		c.send(k, to, b[:n])
		b = b[n:]
	}
}

// refuse counts a message that has no effect.
func (c *core) refuse(err error) {
	for _, known := range [...]struct {
		err  error
		name string
	}{
		{wire.ErrLength, "length"}, {wire.ErrVersion, "version"}, {wire.ErrKind, "kind"}, {wire.ErrName, "name"}, {wire.ErrSignature, "signature"},
		{wire.ErrRecord, "record"}, {ErrSubject, "subject"}, {ErrStranger, "stranger"}, {ErrReplay, "replay"}, {ErrRole, "role"}, {ErrAddress, "address"},
		{ErrTooMany, "too_many"},
	} {
		if errors.Is(err, known.err) {
			c.stats.Refused[known.name]++
			return
		}
	}
	c.stats.Refused["content"]++
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fleet: %v", err)) // of types that have no such error
	}
	return b
}
