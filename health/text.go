package health

import "fmt"

// Duration gives ns in a unit that suits, such as "8.4 ms".
func Duration(ns int64) string {
	switch {
	case ns >= 2*3600e9:
		return fmt.Sprintf("%.1f h", float64(ns)/3600e9)
	case ns >= 120e9:
		return fmt.Sprintf("%.1f min", float64(ns)/60e9)
	case ns >= 1e9:
		return fmt.Sprintf("%.3g s", float64(ns)/1e9)
	case ns >= 1e6:
		return fmt.Sprintf("%.3g ms", float64(ns)/1e6)
	case ns >= 1e3:
		return fmt.Sprintf("%.3g us", float64(ns)/1e3)
	}
	return fmt.Sprintf("%d ns", ns)
}

// Bytes gives bytes in a unit that suits, such as "1.2 MB".
func Bytes(n uint64) string { return scaled(float64(n), "B") }

// Rate gives bit/s in a unit that suits, such as "9.3 Gbit/s".
func Rate(bps float64) string { return scaled(bps, "bit/s") }

func scaled(v float64, unit string) string {
	for _, s := range []struct {
		from   float64
		prefix string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= s.from {
			return fmt.Sprintf("%.3g %s%s", v/s.from, s.prefix, unit)
		}
	}
	return fmt.Sprintf("%.3g %s", v, unit)
}
