package config

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/cnpgate/cnpgate/internal/packet"
)

type (
	tags   = scalar[string, tagsKind]
	tunnel = scalar[string, tunnelKind]
)

const noTags = "none"

// tpids are the tag protocol identifiers of a VLAN; the first one need not be written.
var tpids = [...]uint16{packet.EtherTypeCTag, packet.EtherTypeSTag, packet.EtherTypeQinQ}

// tagsKind is the VLAN tags of a flow, the outer one first.
type tagsKind struct{}

// parse returns the text in its only form, so that equal tags have equal texts.
func (k tagsKind) parse(text string, rl rule) (string, error) {
	all, ok := parseTags(text)
	if !ok {
		return "", not(text, "a VLAN's tags", k.expects(rl))
	}
	var parts []string
	for _, tag := range all {
		switch {
		case tag == 0:
		case tag.TPID() == tpids[0]:
			parts = append(parts, strconv.Itoa(int(tag.VID())))
		default:
			parts = append(parts, tag.String())
		}
	}
	if parts == nil {
		return noTags, nil
	}
	return strings.Join(parts, "/"), nil
}

func (tagsKind) expects(rule) string {
	return "a VID of 0 to 4094, such as 10, with another TPID than 0x8100 as 0x88a8:10, two tags as 0x88a8:10/20, or " + noTags
}

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

// tunnelKind is the tunnel of a flow.
type tunnelKind struct{}

func (k tunnelKind) parse(text string, rl rule) (string, error) {
	of, ok := parseTunnel(text)
	if !ok {
		return "", not(text, "a tunnel", k.expects(rl))
	}
	return fmt.Sprintf("%v:%d", of.Kind, of.ID), nil
}

func (tunnelKind) expects(rule) string {
	return "a kind, vxlan, gre, ip-in-ip, mpls or srv6, and its identifier, such as vxlan:5000; without an identifier it is 0"
}

func parseTunnel(text string) (t packet.Tunnel, ok bool) {
	name, id, named := strings.Cut(text, ":")
	for t.Kind = packet.VXLAN; t.Kind.String() != name; t.Kind++ {
		if t.Kind == packet.SRv6 {
			return t, false
		}
	}
	if !named {
		return t, true
	}
	n, err := strconv.ParseUint(id, 10, 32)
	t.ID = uint32(n)
	return t, err == nil
}

// Scope is the VLAN or tunnel that a pair is in; ok is false if it has none.
func (p *QPPair) Scope() (s packet.Scope, ok bool) {
	if p.Tags == "" && p.Tunnel == "" {
		return 0, false
	}
	all, _ := parseTags(cmp.Or(p.Tags, noTags))
	if p.Tunnel == "" {
		return packet.ScopeInVLAN(0, all[0], all[1]), true
	}
	t, _ := parseTunnel(p.Tunnel)
	return packet.ScopeInTunnel(0, t, all[0]), true
}
