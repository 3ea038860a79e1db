package api

import (
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnpgate/cnpgate/dataplane"
	"github.com/cnpgate/cnpgate/pairing"
)

const maxLimit = 1<<32 - 1

// filter selects flows. A parameter that is not given selects all.
type filter struct {
	source, destination     netip.Prefix
	sourceQP, destinationQP *uint32
	state, evidence         string
	limit                   uint64        // 0: none
	interval                time.Duration // for which rates are measured; 0: don't measure
}

func parseFilter(values map[string]string) (*filter, error) {
	f := &filter{}
	for key, text := range values {
		if err := f.set(key, text); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// set reads one parameter.
func (f *filter) set(key, text string) (err error) {
	switch key {
	case "source_ip":
		f.source, err = parsePrefix(key, text)
	case "destination_ip":
		f.destination, err = parsePrefix(key, text)
	case "source_qp":
		f.sourceQP, err = parseQP(key, text)
	case "destination_qp":
		f.destinationQP, err = parseQP(key, text)
	case "qp_state":
		f.state, err = oneOf(key, text, QPStates)
	case "qp_evidence":
		f.evidence, err = oneOf(key, text, QPEvidences)
	case "interval":
		f.interval, err = parseInterval(text)
	case "limit":
		if f.limit, err = strconv.ParseUint(text, 10, 32); err != nil || f.limit == 0 {
			err = failed(http.StatusBadRequest, "limit is %.50q; expected a number from 1 to %d, or no limit", text, maxLimit)
		}
	}
	return err
}

// names are the words for the constants from first to last.
func names[T interface {
	~uint8
	String() string
}](first, last T) (all []string) {
	for v := first; v <= last; v++ {
		all = append(all, v.String())
	}
	return all
}

func oneOf(key, text string, words []string) (string, error) {
	if !slices.Contains(words, text) {
		return "", failed(http.StatusBadRequest, "%s is %.50q; expected %s", key, text, strings.Join(words, ", "))
	}
	return text, nil
}

func parsePrefix(key, text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, failed(http.StatusBadRequest, "%s is %.50q; expected an address or a prefix, such as 10.1.0.1 or 10.1.0.0/16", key, text)
	}
	return p.Masked(), nil
}

// MinInterval and MaxInterval bound the time for which rates are measured.
const (
	MinInterval = 10 * time.Millisecond
	MaxInterval = 5 * time.Second
)

func parseInterval(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < MinInterval || d > MaxInterval {
		return 0, failed(http.StatusBadRequest, "interval is %.50q; expected a time from %v to %v, such as 1s, or no interval", text, MinInterval, MaxInterval)
	}
	return d, nil
}

func parseQP(key, text string) (*uint32, error) {
	n, err := strconv.ParseUint(text, 0, 24)
	if err != nil {
		return nil, failed(http.StatusBadRequest, "%s is %.50q; expected a QP, 0 to 16777215", key, text)
	}
	qp := uint32(n)
	return &qp, nil
}

// wants reports whether the filter selects a flow.
func (f *filter) wants(c *dataplane.FlowRecord) bool {
	switch v := &c.View; {
	case f.destinationQP != nil && *f.destinationQP != c.Key.DestQP:
	case f.sourceQP != nil && (v.State() != pairing.Confirmed || v.SourceQP() != *f.sourceQP):
	case f.state != "" && f.state != v.State().String():
	case f.evidence != "" && f.evidence != v.Evidence().String():
	case f.source.IsValid() && !f.source.Contains(c.Key.Src.Netip()):
	case f.destination.IsValid() && !f.destination.Contains(c.Key.Dst.Netip()):
	default:
		return true
	}
	return false
}
