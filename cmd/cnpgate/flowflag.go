package main

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// flowFlag is a flag that names a flow: SRC,DST[,QP].
type flowFlag struct {
	source, destination netip.Addr // the zero Addr: no flow is named
	qp                  string
}

func (f *flowFlag) String() string {
	if !f.source.IsValid() {
		return ""
	}
	return strings.TrimSuffix(f.source.String()+","+f.destination.String()+","+f.qp, ",")
}

func (*flowFlag) Type() string { return "SRC,DST[,QP]" }

func (f *flowFlag) Set(text string) (err error) {
	parts := strings.Split(text, ",")
	if len(parts) < 2 || len(parts) > 3 {
		return fmt.Errorf("%q is not a flow; expected SRC,DST or SRC,DST,QP, such as 10.1.0.1,10.2.0.1,17", text)
	}
	for i, a := range []*netip.Addr{&f.source, &f.destination} {
		if *a, err = parseHost(parts[i]); err != nil {
			return err
		}
	}
	if err := sameVersion(f.source, f.destination); err != nil {
		return err
	}
	if len(parts) == 3 {
		f.qp = parts[2]
		return checkQP(f.qp)
	}
	return nil
}

// choose makes a filter select the flow's notifications.
func (f *flowFlag) choose(n *notificationFilter) {
	if !f.source.IsValid() {
		return
	}
	*n.flags["source_ip"], *n.flags["destination_ip"], *n.flags["destination_qp"] = f.source.String(), f.destination.String(), f.qp
}

// packets are the parameters of the request for the flow's packets.
func (f *flowFlag) packets(decisions bool, rate uint) url.Values {
	v := url.Values{"source_ip": {f.source.String()}, "destination_ip": {f.destination.String()}, "rate": {strconv.FormatUint(uint64(rate), 10)}}
	if f.qp != "" {
		v.Set("destination_qp", f.qp)
	}
	if decisions {
		v.Set("decisions", "true")
	}
	return v
}
