package api

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/netip"
	"time"

	"github.com/cnpgate/cnpgate/proxy"
)

// Proxy is a prefix of senders, and the proxy that the gateway notifies in their place.
type Proxy struct {
	Prefix netip.Prefix `json:"prefix" doc:"The senders. The longest prefix of a sender's address counts." column:"PREFIX"`
	Proxy  netip.Addr   `json:"proxy" doc:"Address of their proxy." column:"PROXY"`
	Origin string       `json:"origin" doc:"Where the entry comes from: static, which is the configuration, or the protocol that learned it, such as bgp." column:"ORIGIN"`
}

// ProxiesBody is the answer to GET /v1/proxies.
type ProxiesBody struct {
	Proxies []Proxy `json:"proxies" doc:"Proxies that the gateway notifies."`
}

// proxiesAtOnce are encoded within one deadline.
const proxiesAtOnce = 4096

// proxies writes the proxies in force, in the order of their prefixes, an entry a line. It needs memory for one at a time.
func (s *flows) proxies(r *request) (any, error) {
	r.to.Header().Set("Content-Type", jsonType)
	to := bufio.NewWriterSize(r.to, 64<<10)
	if err := writeProxies(to, s.plane.Policy().Proxies.Entries(), func() { r.keepGoing(time.Time{}) }); err != nil {
		panic(http.ErrAbortHandler) // so that the client doesn't take a part for the whole answer
	}
	return nil, nil
}

// writeProxies writes the answer, and calls pause from time to time.
func writeProxies(to *bufio.Writer, entries []proxy.Sender, pause func()) error {
	separator := `{"proxies":[` + "\n"
	for i, e := range entries {
		if i%proxiesAtOnce == 0 {
			pause()
		}
		b, err := json.Marshal(Proxy{e.Prefix, e.Proxy, e.Origin})
		if err != nil {
			return err
		}
		_, _ = to.WriteString(separator) // Flush returns the error
		_, _ = to.Write(b)
		separator = ",\n"
	}
	if len(entries) == 0 {
		_, _ = to.WriteString(separator)
	}
	_, _ = to.WriteString("\n]}\n")
	return to.Flush()
}
