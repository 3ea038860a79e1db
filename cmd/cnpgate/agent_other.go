//go:build !linux

package main

import (
	"errors"

	"github.com/cnpgate/cnpgate/agent"
)

func rdmaKernel() (agent.Kernel, error) {
	return nil, errors.New("this system has no RDMA netlink; expected Linux")
}
