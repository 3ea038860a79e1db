package config

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
)

// forms are the forms of values that only a gateway's configuration has.
var forms = yamldoc.Forms{
	// exactly one argument for EAL, so that it can't add others
	"device": func(yamldoc.Bounds) yamldoc.Form {
		return yamldoc.Words("a device", "an argument of EAL's -a or --vdev, such as 0000:01:00.0 or net_af_packet0,iface=eth1", `^[^-\s]\S*$`, func(text string) bool {
			return text != "" && yamldoc.IsPlain(text) && text[0] != '-' && !strings.ContainsFunc(text, unicode.IsSpace)
		})
	},
	// a Unix socket: its clients can change the gateway's configuration, so it needs the permissions of a file
	"listener": func(yamldoc.Bounds) yamldoc.Form {
		const expected = "unix: and an absolute path of at most 107 bytes, such as unix:/run/cnpgate/cnpgate.sock"
		return yamldoc.Checked("a Unix socket", expected, pattern("^unix:/"), func(text string) (file string, ok bool) {
			file, ok = strings.CutPrefix(text, "unix:")
			return file, ok && path.IsAbs(file) && path.Clean(file) == file && len(file) <= 107 // sun_path, unix(7)
		})
	},
	// the VLAN tags of a flow, the outer one first, in their only form, so that equal tags have equal texts
	"tags": func(yamldoc.Bounds) yamldoc.Form {
		const expected = "a VID of 0 to 4094, such as 10, with another TPID than 0x8100 as 0x88a8:10, two tags as 0x88a8:10/20, or " + noTags
		json := map[string]any{"anyOf": []map[string]any{
			pattern(`^(none|(0x[0-9a-fA-F]{4}:)?[0-9]{1,4}(/(0x[0-9a-fA-F]{4}:)?[0-9]{1,4})?)$`), {"type": "integer", "minimum": 0, "maximum": 4094}}}
		return yamldoc.Checked("a VLAN's tags", expected, json, func(text string) (string, bool) {
			all, ok := parseTags(text)
			var parts []string
			for _, tag := range all {
				switch {
				case tag == 0:
				case tag.TPID() == packet.EtherTypeCTag:
					parts = append(parts, strconv.Itoa(int(tag.VID())))
				default:
					parts = append(parts, tag.String())
				}
			}
			return cmp.Or(strings.Join(parts, "/"), noTags), ok
		})
	},
	"tunnel": func(yamldoc.Bounds) yamldoc.Form {
		names := packet.TunnelNames()
		expected := "a kind, " + yamldoc.Either(names) + ", and its identifier, such as vxlan:5000; without an identifier it is 0"
		return yamldoc.Checked("a tunnel", expected, pattern(`^(`+strings.Join(names, "|")+`)(:[0-9]+)?$`), func(text string) (string, bool) {
			of, ok := parseTunnel(text)
			return fmt.Sprintf("%v:%d", of.Kind, of.ID), ok
		})
	},
	// a format that an endpoint accepts
	"accepted": func(yamldoc.Bounds) yamldoc.Form {
		names := make([]string, packet.SenderNotifications)
		for f := range names {
			names[f] = Format(f).String()
		}
		expected := yamldoc.Either(names)
		return yamldoc.Form{Expected: expected, JSON: map[string]any{"enum": names}, Parse: func(text string) (any, error) {
			if text == packet.ProxyNotification.String() {
				return packet.NotANotification, fmt.Errorf("%s goes to a proxy, not to a host; list these hosts with their proxy in proxy.senders; here, expected %s", text, expected)
			}
			return Format(slices.Index(names, text)), yamldoc.CheckWord(text, names)
		}}
	},
}

func pattern(text string) map[string]any { return map[string]any{"type": "string", "pattern": text} }

const noTags = "none"

func parseTags(text string) (tags [2]packet.Tag, ok bool) {
	if text == noTags {
		return tags, true
	}
	parts := strings.Split(text, "/")
	if len(parts) > len(tags) {
		return tags, false
	}
	for i, part := range parts {
		protocol, vid, named := strings.Cut(part, ":")
		if !named {
			protocol, vid = "0x8100", part
		}
		tpid, err := strconv.ParseUint(protocol, 0, 16)
		if err != nil {
			return tags, false
		}
		const most = 4094 // 4095 is reserved (IEEE 802.1Q 9.6)
		n, err := strconv.ParseUint(vid, 10, 16)
		if tags[i] = packet.MakeTag(uint16(tpid), uint16(n)); err != nil || n > most || tags[i] == 0 {
			return tags, false
		}
	}
	return tags, true
}

func parseTunnel(text string) (t packet.Tunnel, ok bool) {
	name, id, named := strings.Cut(text, ":")
	if t.Kind = packet.TunnelKindOf(name); t.Kind == packet.NoTunnel || !named {
		return t, t.Kind != packet.NoTunnel
	}
	n, err := strconv.ParseUint(id, 10, 32)
	t.ID = uint32(n)
	return t, err == nil
}

// Scope is the VLAN or tunnel that a pair is in; ok is false if it has none.
func (p *QPPair) Scope() (s packet.Scope, ok bool) {
	return scopeOf(p.Tags, p.Tunnel), p.Tags != "" || p.Tunnel != ""
}

// Scopes are those of the two directions.
func (p *ScopePair) Scopes() [2]packet.Scope {
	return [2]packet.Scope{scopeOf(p.Tags, p.Tunnel), scopeOf(p.OtherTags, p.OtherTunnel)}
}

func scopeOf(tags, tunnel string) packet.Scope {
	all, _ := parseTags(cmp.Or(tags, noTags))
	if tunnel == "" {
		return packet.ScopeInVLAN(0, all[0], all[1])
	}
	t, _ := parseTunnel(tunnel)
	return packet.ScopeInTunnel(0, t, all[0])
}
