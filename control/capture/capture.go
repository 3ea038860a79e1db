// Package capture writes the notifications of a gateway, and packets of a flow, to a pcapng file. A comment on each gives the reason.
package capture

import (
	"io"
	"runtime"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/cnpgate/cnpgate/control/report"
)

// Writer writes one file. It flushes every packet, so that a reader at the other end of a pipe gets it at once.
type Writer struct {
	ng            *pcapgo.NgWriter
	interfaces    map[string]int // by port that notifications leave by, or packets arrive by
	written, lost uint64
}

// NewWriter begins a file whose header names the application. Without packets it has one interface, which belongs to no port.
func NewWriter(to io.Writer, application string) (*Writer, error) {
	section := pcapgo.NgSectionInfo{Hardware: runtime.GOARCH, OS: runtime.GOOS, Application: application}
	ng, err := pcapgo.NewNgWriterInterface(to, iface("cnpgate", "all notifications of the gateway"), pcapgo.NgWriterOptions{SectionInfo: section})
	if err != nil {
		return nil, err
	}
	return &Writer{ng: ng, interfaces: map[string]int{}}, ng.Flush()
}

func iface(name, description string) pcapgo.NgInterface {
	return pcapgo.NgInterface{Name: name, Description: description, LinkType: layers.LinkTypeEthernet, TimestampResolution: 9}
}

// Write writes a notification. The interface is the port by which it leaves.
func (w *Writer) Write(n *report.Notification) error {
	return w.write(n.SentBy, n.Time, n.Frame, n.Length, n.Comment())
}

// WritePacket writes a packet of a flow. The interface is the port by which it arrived.
func (w *Writer) WritePacket(p *report.Packet) error {
	return w.write(p.Port, p.Time, p.Frame, p.Length, p.Comment())
}

// write writes a frame of a port, with a comment unless that is empty.
func (w *Writer) write(port string, at time.Time, frame []byte, length int, comment string) error {
	id, ok := w.interfaces[port]
	if !ok {
		var err error
		if id, err = w.ng.AddInterface(iface(port, "port "+port+" of the gateway")); err != nil {
			return err
		}
		w.interfaces[port] = id
	}
	info := gopacket.CaptureInfo{Timestamp: at, CaptureLength: len(frame), Length: max(length, len(frame)), InterfaceIndex: id}
	var options pcapgo.NgPacketOptions
	if comment != "" {
		options.Comments = []string{comment}
	}
	if err := w.ng.WritePacketWithOptions(info, frame, options); err != nil {
		return err
	}
	w.written++
	return w.ng.Flush()
}

// Lost adds to the number of frames that could not be captured.
func (w *Writer) Lost(n uint64) { w.lost += n }

// Written is the number of frames in the file.
func (w *Writer) Written() uint64 { return w.written }

// Losses is the number of frames that could not be captured.
func (w *Writer) Losses() uint64 { return w.lost }

// End ends the file with the numbers of packets and losses.
func (w *Writer) End() error {
	stats := pcapgo.NgInterfaceStatistics{LastUpdate: time.Now(), PacketsReceived: w.written + w.lost, PacketsDropped: w.lost}
	if err := w.ng.WriteInterfaceStats(0, stats); err != nil {
		return err
	}
	return w.ng.Flush()
}
