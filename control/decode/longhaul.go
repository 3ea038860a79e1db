package decode

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// metrics are the names and units of metric types (draft-tian 10.4).
var metrics = map[uint8]struct{ name, unit string }{
	packet.MetricUnspecified: {"unspecified", ""},
	packet.MetricQueueDepth:  {"queue depth", "KB"},
	packet.MetricQueueGrowth: {"queue growth", "KB/ms"},
	packet.MetricECNRate:     {"ECN marking", "percent"},
	packet.MetricRTT:         {"RTT", "us"},
}

// parameterUnits are the units of Parameter by action.
var parameterUnits = map[packet.Action]string{packet.ActionPause: "us", packet.ActionRateReduce: "percent", packet.ActionResume: "percent"}

// longHaul has the fields of a Long-haul CNP and its Extension Objects; class is the Class-Num of Long-haul CNP's own objects.
func longHaul(n *cnpdec.LongHaul, class uint8) []Layer {
	l := Layer{Key: "long_haul_cnp", Name: "Long-haul"}
	l.say("level", "Congestion Level", n.Level, "%d of 255", n.Level)
	l.as("action", "Action", n.Action.String())
	unit := parameterUnits[n.Action]
	text := strings.TrimSpace(fmt.Sprintf("%d %s", n.Parameter, unit))
	if n.Action == packet.ActionResume && n.Parameter == 0 {
		text += " (all of the last reduction)"
	}
	l.say("parameter", "Parameter", n.Parameter, "%s", text)
	l.as("parameter_unit", "", unit)
	l.as("source_qp", "Source QP", n.SourceQP)
	m := metrics[n.MetricType]
	if m.name == "" {
		m.name = "unknown"
	}
	l.say("metric_type", "Metric Type", n.MetricType, "%d, %s", n.MetricType, m.name)
	text = strings.TrimSpace(fmt.Sprintf("%d %s", n.MetricValue, m.unit))
	if n.Undisclosed() {
		text += " (not disclosed)"
	}
	l.say("metric_value", "Metric Value", n.MetricValue, "%s", text)
	l.as("metric_unit", "", m.unit)
	l.reserved("reserved", uint64(n.Reserved))
	if len(n.Objects) == 0 {
		return []Layer{l}
	}
	return append([]Layer{l, extension(n)}, objects(n.Objects, class)...)
}

func extension(n *cnpdec.LongHaul) Layer {
	l := Layer{Key: "extension", Name: "Extension"}
	l.as("version", "version", n.Header.Version)
	if n.Header.Checksum == 0 {
		l.say("checksum", "checksum", 0, "none")
	} else {
		l.verdict(n.Header.Checksum, true) // cnpdec accepts no other
	}
	l.reserved("reserved", uint64(n.Header.Reserved))
	return l
}

// objects has the Extension Objects, which cnpdec has found valid; class is the Class-Num of Long-haul CNP's own objects.
func objects(list []byte, class uint8) []Layer {
	var all []Layer
	for len(list) > 0 { // each round consumes at least four octets
		o, size := packet.NextObject(list)
		if size == 0 {
			break
		}
		l := Layer{Key: "objects", Name: "Object", List: true}
		l.as("class", "class", o.Class)
		l.as("c_type", "C-Type", o.CType)
		l.say("payload", "payload", hex.EncodeToString(o.Payload), "%d octets, %x", len(o.Payload), o.Payload)
		if o.Class == class {
			switch o.CType {
			case packet.CTypeTimestamp:
				l.as("timestamp", "timestamp", ntpTime(binary.BigEndian.Uint64(o.Payload)).Format(timeLayout))
			case packet.CTypeDevice:
				l.say("device", "device", string(o.Payload), "%s", strconv.QuoteToGraphic(string(o.Payload)))
			case packet.CTypePath:
				l.say("path", "path", hex.EncodeToString(o.Payload), "the payload")
			}
		}
		all = append(all, l)
		list = list[size:]
	}
	return all
}

// ntpTime converts from NTP timestamp format (RFC 5905 6). Seconds below 2^31 are of the era that begins in 2036.
func ntpTime(ntp uint64) time.Time {
	const epoch = 2208988800 // Unix in NTP's era 0
	seconds := int64(ntp >> 32)
	if seconds < 1<<31 {
		seconds += 1 << 32
	}
	fraction := ntp & 0xffffffff
	return time.Unix(seconds-epoch, int64(fraction*1e9>>32)).UTC()
}
