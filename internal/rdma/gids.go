package rdma

import (
	"fmt"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A table of GIDs has some hundred entries, of which few are used: a new GID takes the first free one. So the search ends after maxHole free ones.
const (
	maxGIDs = 1024
	maxHole = 64
)

// Addresses reads the addresses of a device's port that RoCEv2 packets of its QPs can have, from the folder /sys/class/infiniband. A link-local
// address is not one of them: no gateway routes it.
func Addresses(sysfs fs.FS, device string, port uint32) (all []netip.Addr, err error) {
	dir := path.Join(device, "ports", fmt.Sprint(port))
	if _, err := fs.Stat(sysfs, path.Join(dir, "gids/0")); err != nil {
		return nil, fmt.Errorf("the GIDs of RDMA device %s, port %d: %w", device, port, err)
	}
	for i, hole := 0, 0; i < maxGIDs && hole < maxHole; i++ {
		index := strconv.Itoa(i)
		kind, err := fs.ReadFile(sysfs, path.Join(dir, "gid_attrs/types", index))
		if hole++; err != nil { // free, or the end
			continue
		}
		hole = 0
		text, err := fs.ReadFile(sysfs, path.Join(dir, "gids", index))
		if err != nil || strings.TrimSpace(string(kind)) != "RoCE v2" {
			continue
		}
		a, err := netip.ParseAddr(strings.TrimSpace(string(text)))
		if a = a.Unmap(); err == nil && !a.IsUnspecified() && !a.IsLinkLocalUnicast() && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all, nil
}
