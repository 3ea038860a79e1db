package main

import (
	"net/url"

	"github.com/spf13/cobra"
)

// notificationFilter has the flags that select notifications; the gateway checks their values.
type notificationFilter struct {
	flags map[string]*string // by parameter of the API
}

func (f *notificationFilter) add(c *cobra.Command) {
	f.flags = map[string]*string{}
	for _, p := range []struct{ parameter, flag, usage string }{
		{"port", "port", "only of this port: the congested port, or the one by which the notification leaves"},
		{"kind", "kind", `only of this kind, such as "fast-cnp"`},
		{"outcome", "outcome", `only these: "sent", "observed" or "suppressed"; without it all but suppressed ones`},
		{"source_ip", "source-ip", "only to this sender: an address or a prefix"},
		{"destination_ip", "destination-ip", "only about flows to this receiver: an address or a prefix"},
		{"source_qp", "source-qp", "only about flows from this QP"},
		{"destination_qp", "destination-qp", "only about flows to this QP"},
	} {
		f.flags[p.parameter] = c.Flags().String(p.flag, "", p.usage)
	}
}

// values are the request's parameters.
func (f *notificationFilter) values() url.Values {
	v := url.Values{}
	for parameter, text := range f.flags {
		if *text != "" {
			v.Set(parameter, *text)
		}
	}
	return v
}
