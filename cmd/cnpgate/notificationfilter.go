package main

import (
	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
)

// notificationFilter has the flags that select notifications. Their values are checked here, except the port, which only the gateway knows.
type notificationFilter struct{ flowFilter }

func (f *notificationFilter) add(c *cobra.Command) {
	c.Flags().StringVar(f.value("port"), "port", "", "only of this port: the congested port, or the one by which the notification leaves")
	wordFlag(c, f.value("kind"), "kind", "", "only of this kind", api.Kinds...)
	wordFlag(c, f.value("outcome"), "outcome", "", "only these; without it all but suppressed ones", api.Outcomes...)
	f.addFlow(c)
}
