package decode

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"

	"github.com/cnpgate/cnpgate/internal/igp/isis"
	"github.com/cnpgate/cnpgate/internal/igp/ospf"
	"github.com/cnpgate/cnpgate/internal/igp/ospfv2"
	"github.com/cnpgate/cnpgate/internal/igp/ospfv3"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// igp decodes a packet of IS-IS or OSPF; false if it is none. Of LSPs and Link State Updates the record has the prefixes, their flags and their
// proxies; of other packets only the name. If one can't be read, Malformed says why.
func igp(frame []byte, p *packet.Parsed) (Record, bool) {
	if p.Family == 0 {
		return isisPDU(frame, p)
	}
	if p.Proto != ospf.Protocol || p.L4 == 0 || int(p.IPEnd) > len(frame) || uint32(p.L4) > p.IPEnd {
		return Record{}, false
	}
	record := Record{IGP: fmt.Sprintf("ospfv%d", map[uint8]int{4: 2, 6: 3}[p.Family]), Source: address(p.Family, p.Src), Destination: address(p.Family, p.Dst)}
	o, err := ospf.DecodePacket(frame[p.L4:p.IPEnd])
	if err != nil {
		record.Malformed = err.Error()
		return record, true
	}
	record.IGP = fmt.Sprintf("ospfv%d-%s", o.Version, ospf.TypeName(o.Type))
	if o.Type == ospf.LinkStateUpdate {
		record.Layers = append(ethernet(frame, p), internet(frame, p))
		record.update(&o)
	}
	return record, true
}

// isisPDU decodes an IEEE 802.3 frame with the LLC header of IS-IS.
func isisPDU(frame []byte, p *packet.Parsed) (Record, bool) {
	at := packet.EthernetLen + packet.VLANTagLen*int(p.Tags)
	if p.EtherType != 0 || len(frame) < at || !strings.HasPrefix(string(frame[at:]), isis.LLC) {
		return Record{}, false
	}
	pdu := frame[at+len(isis.LLC):]
	record := Record{IGP: "isis", Source: mac(frame[6:]), Destination: mac(frame)}
	kind, err := isis.Type(pdu)
	if err != nil {
		record.Malformed = err.Error()
		return record, true
	}
	if record.IGP = kind.String(); kind != isis.L1LSP && kind != isis.L2LSP {
		return record, true
	}
	l, err := isis.Decode(pdu)
	if err != nil {
		record.Malformed = err.Error()
		return record, true
	}
	record.Layers = append(ethernet(frame, p), lsp(&l))
	for i := range l.Prefixes {
		record.Layers = append(record.Layers, isisPrefix(&l.Prefixes[i], l.RouterIDs))
	}
	return record, true
}

// lsp has the header of an LSP.
func lsp(l *isis.LSP) Layer {
	layer := Layer{Key: "isis", Name: "IS-IS"}
	layer.as("lsp_id", "LSP ID", l.ID.String())
	layer.as("level", "level", map[isis.PDUType]int{isis.L1LSP: 1, isis.L2LSP: 2}[l.Type])
	layer.say("sequence", "sequence number", l.Sequence, "0x%08x", l.Sequence)
	layer.say("lifetime", "lifetime", l.Lifetime, "%d s%s", l.Lifetime, map[bool]string{true: ", purged"}[l.Lifetime == 0])
	layer.verdict(l.Checksum, l.ChecksumOK)
	layer.address("router_id_ipv4", "TE Router ID", l.RouterIDs.IPv4)
	layer.address("router_id_ipv6", "IPv6 TE Router ID", l.RouterIDs.IPv6)
	return layer
}

// address adds an address if there is one.
func (l *Layer) address(key, name string, a netip.Addr) {
	if a.IsValid() {
		l.as(key, name, a.String())
	}
}

var isisFlags = []flag{{isis.FlagX, "X"}, {isis.FlagR, "R"}, {isis.FlagN, "N"}, {isis.FlagE, "E"}, {isis.FlagA, "A"}, {isis.FlagP, "P"}}

func isisPrefix(p *isis.Prefix, ids isis.RouterIDs) Layer {
	l := Layer{Key: "prefixes", Name: "Prefix", List: true}
	l.as("prefix", "prefix", p.Prefix.String())
	l.say("tlv", "TLV", p.TLV, "%d, %s", p.TLV, map[uint8]string{isis.IPReach: "extended IP reachability", isis.MTIPReach: "IP reachability of a topology",
		isis.IPv6Reach: "IPv6 reachability", isis.MTIPv6Reach: "IPv6 reachability of a topology"}[p.TLV])
	if p.TLV == isis.MTIPReach || p.TLV == isis.MTIPv6Reach {
		const topologyID = 0xfff
		l.as("topology", "topology", p.Topology&topologyID)
	}
	l.as("metric", "metric", p.Metric)
	if p.Down {
		l.as("down", "down", true)
	}
	if p.External {
		l.as("external", "external", true)
	}
	l.attributeFlags(p.Attributes, p.P(), isisFlags)
	l.address("source_router_ipv4", "source router", p.Source4)
	l.address("source_router_ipv6", "source router", p.Source6)
	var unknown []string
	for _, t := range p.Unknown {
		unknown = append(unknown, fmt.Sprintf("%d: %x", t.Type, t.Value))
	}
	proxy, ok := p.Proxy(ids)
	l.proxy(unknown, p.P(), proxy, ok)
	return l
}

// flag is a flag in the first octet of prefix attribute flags.
type flag struct {
	mask byte
	name string
}

// attributeFlags adds prefix attribute flags, if there are any, and the P-flag.
func (l *Layer) attributeFlags(flags []byte, p bool, names []flag) {
	if flags != nil {
		var set []string
		for _, f := range names {
			if len(flags) > 0 && flags[0]&f.mask != 0 {
				set = append(set, f.name)
			}
		}
		l.say("attribute_flags", "attribute flags", hex.EncodeToString(flags), "0x%x%s", flags, strings.TrimSuffix(", "+strings.Join(set, ", "), ", "))
	}
	l.as("p_flag", "P-flag", p)
}

// proxy adds sub-TLVs that a receiver ignores, and the proxy of a prefix with the P-flag.
func (l *Layer) proxy(unknown []string, p bool, proxy netip.Addr, ok bool) {
	if unknown != nil {
		l.as("unknown_sub_tlvs", "unknown sub-TLVs", strings.Join(unknown, ", "))
	}
	switch {
	case ok:
		l.as("proxy", "proxy", proxy.String())
	case p:
		l.say("", "proxy", "", "not known: no router address comes with the prefix")
	}
}

// update adds the LSAs of a Link State Update, then their prefixes.
func (r *Record) update(o *ospf.Packet) {
	l := Layer{Key: "ospf", Name: "OSPF"}
	l.as("version", "version", uint8(o.Version))
	l.as("router", "router", o.Router.String())
	l.as("area", "area", o.Area.String())
	if o.Version == ospf.V3 {
		l.as("instance", "instance", o.Instance)
	}
	r.Layers = append(r.Layers, l)
	var prefixes []Layer
	err := o.Update(func(lsa *ospf.LSA, checksum bool) bool {
		l, more, err := lsaLayer(o.Version, lsa, checksum)
		if err != nil {
			l.as("malformed", "malformed", err.Error())
		}
		r.Layers, prefixes = append(r.Layers, l), append(prefixes, more...)
		return true
	})
	if err != nil {
		r.Malformed = err.Error()
	}
	r.Layers = append(r.Layers, prefixes...)
}

// lsaLayer has the header of an LSA, and the layers of its prefixes.
func lsaLayer(v ospf.Version, lsa *ospf.LSA, checksum bool) (l Layer, prefixes []Layer, err error) {
	l = Layer{Key: "lsas", Name: "LSA", List: true}
	name := ospfv2.TypeName(lsa)
	if v == ospf.V3 {
		name = ospfv3.TypeName(lsa.Type)
	}
	id := ospfv2.IDString(lsa.ID)
	l.as("type", "type", name)
	l.as("id", "Link State ID", id)
	l.as("router", "advertising router", lsa.Router.String())
	l.say("age", "age", lsa.Age, "%d s%s", lsa.Age, map[bool]string{true: ", flushed"}[lsa.Flushed()])
	l.say("sequence", "sequence number", lsa.Sequence, "0x%08x", lsa.Sequence)
	l.verdict(lsa.Checksum, checksum)
	of := fmt.Sprintf("%s %s of %s", name, id, lsa.Router)
	switch {
	case v == ospf.V2 && ospfv2.IsExtendedPrefix(lsa):
		body, err := ospfv2.Decode(lsa.Body)
		for i := range body.Prefixes {
			p := &body.Prefixes[i]
			prefix := ospfPrefix(of, p.Prefix, p.RouteType.String())
			prefix.say("flags", "flags", p.Flags, "0x%02x", p.Flags)
			prefix.attributes(&p.Attributes, lsa.Router, true)
			prefixes = append(prefixes, prefix)
		}
		return l, prefixes, err
	case v == ospf.V3 && ospfv3.HasPrefixes(lsa.Type):
		body, err := ospfv3.Decode(lsa.Type, lsa.Body)
		for i := range body.Prefixes {
			p := &body.Prefixes[i]
			prefix := ospfPrefix(of, p.Prefix, p.TLV.String())
			prefix.as("metric", "metric", p.Metric)
			prefix.attributes(&p.Attributes, lsa.Router, false)
			prefixes = append(prefixes, prefix)
		}
		return l, prefixes, err
	}
	return l, nil, nil
}

func ospfPrefix(lsa string, prefix netip.Prefix, route string) Layer {
	l := Layer{Key: "prefixes", Name: "Prefix", List: true}
	l.as("lsa", "LSA", lsa)
	l.as("prefix", "prefix", prefix.String())
	l.as("route", "route", route)
	return l
}

// ospfFlags are the flags of RFC 9792's registries that have a name here.
var ospfFlags = []flag{{0x20, "P"}}

// attributes adds the sub-TLVs of a prefix.
func (l *Layer) attributes(a *ospf.Attributes, router netip.Addr, family4 bool) {
	l.attributeFlags(a.Flags, a.P(), ospfFlags)
	if a.Routers != nil {
		l.as("source_router_ids", "source router IDs", join(a.Routers))
	}
	if a.Addresses != nil {
		l.as("source_router_addresses", "source routers", join(a.Addresses))
	}
	var unknown []string
	for _, t := range a.Unknown {
		unknown = append(unknown, fmt.Sprintf("%d: %x", t.Type, t.Value))
	}
	proxy, ok := a.Proxy(router, family4)
	l.proxy(unknown, a.P(), proxy, ok)
}

func join(all []netip.Addr) string {
	var text []string
	for _, a := range all {
		text = append(text, a.String())
	}
	return strings.Join(text, ", ")
}
