package main

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
)

// notificationFilter has the flags that select notifications. Their values are checked here, except the port, which only the gateway knows.
type notificationFilter struct {
	flags map[string]*string // by parameter of the API
}

func (f *notificationFilter) add(c *cobra.Command) {
	f.flags = map[string]*string{}
	value := func(parameter string) *string {
		f.flags[parameter] = new(string)
		return f.flags[parameter]
	}
	c.Flags().StringVar(value("port"), "port", "", "only of this port: the congested port, or the one by which the notification leaves")
	wordFlag(c, value("kind"), "kind", "", "only of this kind", api.Kinds...)
	wordFlag(c, value("outcome"), "outcome", "", "only these; without it all but suppressed ones", api.Outcomes...)
	for _, p := range []struct {
		parameter, flag, usage string
		check                  func(string) error
	}{
		{"source_ip", "source-ip", "only to this sender: an address or a prefix", checkHosts},
		{"destination_ip", "destination-ip", "only about flows to this receiver: an address or a prefix", checkHosts},
		{"source_qp", "source-qp", "only about flows from this QP", checkQP},
		{"destination_qp", "destination-qp", "only about flows to this QP", checkQP},
	} {
		c.Flags().Var(checkedText{value(p.parameter), p.check}, p.flag, p.usage)
	}
}

func checkHosts(text string) error {
	_, err := hosts(text)
	return err
}

func checkQP(text string) error {
	if _, err := strconv.ParseUint(text, 0, 24); err != nil {
		return fmt.Errorf("%q is not the number of a QP; expected 0 to %d", text, 1<<24-1)
	}
	return nil
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
