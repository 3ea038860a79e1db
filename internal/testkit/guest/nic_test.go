//go:build live && !nodpdk

package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// NIC is an emulated NIC. The test holds the other end of its wire.
type NIC struct {
	guest  *Guest
	name   string
	number int
	model  string
	bus    int
	wire   *net.UnixConn
	far    *net.UnixAddr
}

func newNIC(g *Guest, i int, model string, bus int) (*NIC, error) {
	n := &NIC{guest: g, name: fmt.Sprint("nic", i), number: i, model: model, bus: bus}
	n.far = &net.UnixAddr{Name: g.path(n.name), Net: "unixgram"}
	var err error
	n.wire, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: g.path(n.name + ".test"), Net: "unixgram"})
	if err == nil {
		err = errors.Join(n.wire.SetReadBuffer(8<<20), n.wire.SetWriteBuffer(8<<20))
	}
	return n, err
}

// slot is the PCI slot of the first NIC; the others follow.
const slot = 0x10

// Address is the NIC's PCI address in the guest.
func (n *NIC) Address() string {
	if n.bus != 0 {
		return fmt.Sprintf("0000:%02x:00.%d", n.bus, n.number)
	}
	return fmt.Sprintf("0000:00:%02x.0", slot+n.number)
}

func (n *NIC) arguments() []string {
	at := fmt.Sprintf("addr=%#x", slot+n.number)
	if n.bus != 0 {
		at = fmt.Sprintf("bus=root,addr=0.%d,multifunction=on", n.number)
	}
	device := fmt.Sprintf("%s,id=%s,netdev=%s-wire,mac=02:00:00:00:00:%02x,%s", n.model, n.name, n.name, slot+n.number, at)
	if n.model == "virtio-net-pci" {
		device += ",disable-legacy=on,iommu_platform=on,ats=on"
	}
	return []string{
		"-netdev", fmt.Sprintf("dgram,id=%s-wire,local.type=unix,local.path=%s,remote.type=unix,remote.path=%s.test", n.name, n.far.Name, n.far.Name),
		"-device", device,
	}
}

// Send puts a frame on the wire, towards the guest.
func (n *NIC) Send(frame []byte) error {
	if err := n.wire.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err := n.wire.WriteToUnix(frame, n.far)
	return err
}

// Receive returns the next frame that the guest has sent, or nil if none arrives within the time.
func (n *NIC) Receive(wait time.Duration) ([]byte, error) {
	if err := n.wire.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return nil, err
	}
	frame := make([]byte, 1<<16)
	size, err := n.wire.Read(frame)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, nil
	}
	return frame[:size], err
}

// SetLink connects or disconnects the NIC's cable.
func (n *NIC) SetLink(up bool) error {
	return n.guest.qmp.do("set_link", map[string]any{"name": n.name, "up": up})
}

// qmp is QEMU's control connection.
type qmp struct {
	connection net.Conn
	answers    *json.Decoder
}

func openQMP(g *Guest) (*qmp, error) {
	c, err := g.dial("qmp")
	if err != nil {
		return nil, err
	}
	q := &qmp{c, json.NewDecoder(c)}
	var greeting any
	if err := q.answers.Decode(&greeting); err != nil {
		return q, err
	}
	return q, q.do("qmp_capabilities", nil)
}

func (q *qmp) do(command string, arguments map[string]any) error {
	request := map[string]any{"execute": command}
	if arguments != nil {
		request["arguments"] = arguments
	}
	if err := json.NewEncoder(q.connection).Encode(request); err != nil {
		return err
	}
	for {
		var answer struct {
			Return any
			Error  *struct{ Desc string }
			Event  string
		}
		if err := q.answers.Decode(&answer); err != nil {
			return err
		}
		switch {
		case answer.Error != nil:
			return fmt.Errorf("QEMU: %s: %s", command, answer.Error.Desc)
		case answer.Event == "":
			return nil
		}
	}
}
