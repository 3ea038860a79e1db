package main

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
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
	c.Flags().Var(endFlag(f.value("source_ip"), f.value("source_qp")), "source", "only from this sender, an address or a prefix, this QP (,QP), or both")
	c.Flags().Var(endFlag(f.value("destination_ip"), f.value("destination_qp")), "destination", "only to this receiver, this QP (,QP), or both")
}

// endFlag is a flag that selects flows by one of their ends: HOST, HOST,QP or ,QP, where HOST is an address or a prefix.
func endFlag(host, qp *string) *textFlag {
	return &textFlag{kind: "HOST[,QP]", read: func(text string) (err error) {
		var both bool
		if *host, *qp, both = strings.Cut(text, ","); *host != "" || !both {
			_, err = hosts(*host)
		}
		if both {
			err = errors.Join(err, checkQP(*qp))
		}
		return err
	}}
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

// flowFlag is a flow that a flag names, as parameters of the API; nil: none.
type flowFlag url.Values

// read reads SRC,DST[,QP].
func (f *flowFlag) read(text string) (err error) {
	parts := strings.Split(text, ",")
	if len(parts) < 2 || len(parts) > 3 {
		return fmt.Errorf("%q is not a flow; expected SRC,DST or SRC,DST,QP, such as 10.1.0.1,10.2.0.1,17", text)
	}
	if err := checkHosts(parts[0], parts[1]); err != nil {
		return err
	}
	*f = flowFlag{"source_ip": parts[:1], "destination_ip": parts[1:2]}
	if len(parts) == 3 {
		(*f)["destination_qp"] = parts[2:]
		return checkQP(parts[2])
	}
	return nil
}

// choose makes a filter select the flow's notifications.
func (f flowFlag) choose(n *notificationFilter) {
	for parameter, text := range f {
		*n.flags[parameter] = text[0]
	}
}

// packets are the parameters of the request for the flow's packets, or dropped frames.
func (f flowFlag) packets(drops string, decisions bool, rate uint) url.Values {
	v := url.Values{"rate": {strconv.FormatUint(uint64(rate), 10)}}
	maps.Copy(v, f)
	if drops != "" {
		v.Set("drops", drops)
	}
	if decisions {
		v.Set("decisions", "true")
	}
	return v
}

// notificationFilter has the flags that select notifications. Their values are checked here, except the port, which only the gateway knows.
type notificationFilter struct{ flowFilter }

func (f *notificationFilter) add(c *cobra.Command) {
	c.Flags().StringVar(f.value("port"), "port", "", "only of this port: the congested port, or the one by which the notification leaves")
	wordFlag(c, f.value("kind"), "kind", "", "only of this kind", api.Kinds...)
	wordFlag(c, f.value("outcome"), "outcome", "", "only these; without it all but suppressed ones", api.Outcomes...)
	f.addFlow(c)
}
