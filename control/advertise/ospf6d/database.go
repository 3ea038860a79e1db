package ospf6d

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/cnpgate/cnpgate/control/advertise"
	"github.com/cnpgate/cnpgate/internal/igp/ospf"
	"github.com/cnpgate/cnpgate/internal/igp/ospfv3"
	"github.com/cnpgate/cnpgate/proxy"
)

// origin is the origin of senders learned here.
const origin = "ospf6"

// dump is the answer to commandDump. Header is a whole LSA in hexadecimal, whatever its name says.
type dump struct {
	Area []scope `json:"areaScopedLinkStateDb"`
	AS   []scope `json:"asScopedLinkStateDb"`
}

type scope struct {
	LSAs []struct {
		Header string `json:"header"`
	} `json:"lsa"`
}

// senders returns the senders with a proxy that ospf6d's LSDB has, in the order of their prefixes. An LSA counts if its router is in the tree of
// shortest paths of one of ospf6d's areas. ignored says why the last of those that don't count can't be read,
// or that there are too many prefixes.
func senders(dumped, tree []byte, best advertise.Best) (all []proxy.Sender, ignored, err error) {
	var d dump
	if err := json.Unmarshal(dumped, &d); err != nil {
		return nil, nil, fmt.Errorf("ospf6d: %s: %w", commandDump, err)
	}
	reachable, err := routers(tree)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range append(d.Area, d.AS...) {
		for _, l := range s.LSAs {
			if err := offer(&best, l.Header, reachable); err != nil {
				ignored = err
			}
		}
	}
	if best.Full {
		ignored = fmt.Errorf("there are more than %d prefixes with a proxy, the most that can be learned", proxy.MaxSenders)
	}
	return best.Senders(origin), ignored, nil
}

// offer offers the prefixes of an LSA.
func offer(best *advertise.Best, text string, reachable map[netip.Addr]bool) error {
	b, err := hex.DecodeString(text)
	if err != nil {
		return fmt.Errorf("an LSA in ospf6d's answer: %w", err)
	}
	lsa, _, _, err := ospf.NextLSA(b)
	if err != nil {
		return fmt.Errorf("an LSA in ospf6d's answer: %w", err)
	}
	if !ospfv3.HasPrefixes(lsa.Type) || lsa.Flushed() || !reachable[lsa.Router] {
		return nil
	}
	body, err := ospfv3.Decode(lsa.Type, lsa.Body)
	if err != nil {
		return fmt.Errorf("LSA %#04x %#x of %v: %w", lsa.Type, lsa.ID, lsa.Router, err)
	}
	for i := range body.Prefixes {
		p := &body.Prefixes[i]
		if address, ok := p.Proxy(lsa.Router, false); ok && advertise.Usable(p.Prefix, address) {
			best.Offer(p.Prefix, address)
		}
	}
	return nil
}

// routers are the routers in the answer to commandTree: areas, and in each the root, which has its children by name, and so on.
func routers(tree []byte) (map[netip.Addr]bool, error) {
	var areas map[string]map[string]vertex
	if err := json.Unmarshal(tree, &areas); err != nil {
		return nil, fmt.Errorf("ospf6d: %s: %w", commandTree, err)
	}
	all := map[netip.Addr]bool{}
	for _, roots := range areas {
		addRouters(all, roots)
	}
	return all, nil
}

// vertex is a router or a network of the tree. encoding/json bounds the depth.
type vertex struct {
	Children map[string]vertex `json:"children"`
}

func addRouters(all map[netip.Addr]bool, vertices map[string]vertex) {
	for name, v := range vertices {
		if id, err := netip.ParseAddr(name); err == nil { // a network's name is no address
			all[id] = true
		}
		addRouters(all, v.Children)
	}
}
