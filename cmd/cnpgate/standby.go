//go:build !nodpdk

package main

import (
	"context"
	"errors"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/rs/zerolog"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/dpdk"
)

// standBy waits until no gateway uses the devices of a configuration. The caller calls opened once it has opened them, or failed to: the next standby
// gateway may try then. opened is nil if the context ended first.
func standBy(ctx context.Context, c *config.Config, log zerolog.Logger) (opened func(), err error) {
	last := ""
	release, err := dpdk.Await(ctx, deviceConfig(c).Ports, func(reason string) {
		if reason != last {
			last = reason
			log.Info().Str("reason", reason).Msg("The gateway is standing by.")
			_, _ = daemon.SdNotify(false, daemon.SdNotifyReady+"\nSTATUS=standing by: "+reason) // without systemd there is nobody to notify
		}
		_, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
	})
	switch {
	case errors.Is(err, context.Canceled):
		log.Info().Msg("The gateway was stopped while standing by.")
		return nil, nil
	case err != nil:
		return nil, err
	case last != "":
		log.Warn().Msg("The gateway takes over: the devices are free.")
		_, _ = daemon.SdNotify(false, "STATUS=taking over")
	}
	return func() {
		if err := release(); err != nil {
			log.Warn().Err(err).Msg("The lock of the standby gateways can't be removed. They wait until this gateway ends.")
		}
	}, nil
}
