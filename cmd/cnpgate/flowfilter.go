package main

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
)

// flowFilter has flags that select flows. Their values are checked here.
type flowFilter struct {
	flags map[string]*string // by parameter of the API
}

// value is the text of a parameter, which a flag sets.
func (f *flowFilter) value(parameter string) *string {
	if f.flags == nil {
		f.flags = map[string]*string{}
	}
	f.flags[parameter] = new(string)
	return f.flags[parameter]
}

// addFlow adds the flags about the flow's ends.
func (f *flowFilter) addFlow(c *cobra.Command) {
	for _, p := range []struct {
		parameter, flag, usage string
		check                  func(string) error
	}{
		{"source_ip", "source-ip", "only from this sender: an address or a prefix", checkHosts},
		{"destination_ip", "destination-ip", "only to this receiver: an address or a prefix", checkHosts},
		{"source_qp", "source-qp", "only from this QP", checkQP},
		{"destination_qp", "destination-qp", "only to this QP", checkQP},
	} {
		c.Flags().Var(checkedText{f.value(p.parameter), p.check}, p.flag, p.usage)
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
func (f *flowFilter) values() url.Values {
	v := url.Values{}
	for parameter, text := range f.flags {
		if *text != "" {
			v.Set(parameter, *text)
		}
	}
	return v
}
