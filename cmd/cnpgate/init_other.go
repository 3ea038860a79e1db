//go:build !linux

package main

import (
	"context"
	"errors"
	"time"

	"github.com/cnpgate/cnpgate/control/capturefile"
	"github.com/cnpgate/cnpgate/control/propose"
	"github.com/cnpgate/cnpgate/internal/netif"
)

var errNotLinux = errors.New("this system has no packet sockets; expected Linux")

func readInterface(string) (netif.Facts, error) { return netif.Facts{}, errNotLinux }

func proposedCore(*propose.Plan) (int, error) { return 0, nil }

func listen(context.Context, string, string, func(), func(bool, time.Time, capturefile.Frame) error) (uint64, error) {
	return 0, errNotLinux
}
