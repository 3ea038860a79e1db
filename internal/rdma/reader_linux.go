package rdma

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Reader asks the kernel. It opens a socket for each request, so a Reader never has to be opened again.
type Reader struct {
	// Record, if it isn't nil, gets each message as it comes.
	Record func(command int, message []byte)
}

// Devices returns the RDMA devices that the process's network namespace can see.
func (r *Reader) Devices() (all []Device, err error) {
	err = r.dump(cmdDevice, nil, func(m []byte) error {
		d, err := parseDevice(m)
		all = append(all, d)
		return err
	})
	return all, err
}

// Counts returns the number of QPs of each device, by index. It costs the kernel far less than QPs, which queries the NIC for each.
func (r *Reader) Counts() (map[uint32]uint32, error) {
	all := map[uint32]uint32{}
	err := r.dump(cmdResources, nil, func(m []byte) error {
		device, n, err := parseCount(m)
		all[device] = n
		return err
	})
	return all, err
}

// QPs passes the QPs of a device that belong to processes of this PID namespace; in the first one, also the kernel's.
func (r *Reader) QPs(device uint32, f func(QP)) error {
	return r.dump(cmdQPs, &device, func(m []byte) error { return eachQP(m, f) })
}

// CMIDs passes the RDMA-CM IDs of a device that have a QP.
func (r *Reader) CMIDs(device uint32, f func(CMID)) error {
	return r.dump(cmdCMIDs, &device, func(m []byte) error { return eachCMID(m, f) })
}

func (r *Reader) dump(command int, device *uint32, f func(message []byte) error) error {
	request := nl.NewNetlinkRequest(client<<nl.RDMA_NL_GET_CLIENT_SHIFT|command, unix.NLM_F_DUMP)
	if device != nil {
		request.AddData(nl.NewRtAttr(attrDeviceIndex, nl.Uint32Attr(*device)))
	}
	var wrong error
	err := request.ExecuteIter(unix.NETLINK_RDMA, 0, func(m []byte) bool {
		if r.Record != nil {
			r.Record(command, m)
		}
		wrong = f(m)
		return wrong == nil
	})
	if wrong != nil {
		return fmt.Errorf("RDMA netlink command %d: the kernel's answer has %w", command, wrong)
	}
	return explain(command, err)
}

// explain says what an error of the kernel means, and what to do.
func explain(command int, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EPROTONOSUPPORT):
		return fmt.Errorf("the kernel has no RDMA netlink (%w): load the driver of the RDMA device, such as mlx5_ib or rdma_rxe", err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("RDMA netlink command %d: %w: run as root, or allow the address family AF_NETLINK", command, err)
	case command >= cmdResources && (errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP)):
		return fmt.Errorf("RDMA netlink command %d: %w: the device is gone, or the kernel lacks the command: expected Linux 4.17 or later", command, err)
	}
	return fmt.Errorf("RDMA netlink command %d: %w", command, err)
}
