package rdma

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strings"
)

// maxGIDs bounds the GIDs that are read of a port; mlx5 has 256.
const maxGIDs = 1024

// Addresses reads the addresses of a device's port that RoCEv2 packets of its QPs can have, from the folder /sys/class/infiniband. A link-local
// address is not one of them: no gateway routes it.
func Addresses(sysfs fs.FS, device string, port uint32) ([]netip.Addr, error) {
	dir := path.Join(device, "ports", fmt.Sprint(port))
	gids, err := fs.ReadDir(sysfs, path.Join(dir, "gids"))
	if err != nil {
		return nil, fmt.Errorf("the GIDs of RDMA device %s, port %d: %w", device, port, err)
	}
	var all []netip.Addr
	for _, gid := range gids[:min(len(gids), maxGIDs)] {
		kind, err := fs.ReadFile(sysfs, path.Join(dir, "gid_attrs/types", gid.Name()))
		if errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		if err != nil || strings.TrimSpace(string(kind)) != "RoCE v2" { // an index without a GID can't be read
			continue
		}
		text, err := fs.ReadFile(sysfs, path.Join(dir, "gids", gid.Name()))
		if err != nil {
			continue
		}
		a, err := netip.ParseAddr(strings.TrimSpace(string(text)))
		if err != nil {
			continue
		}
		if a = a.Unmap(); !a.IsUnspecified() && !a.IsLinkLocalUnicast() && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all, nil
}
