package health

import "fmt"

// Duration gives ns in a unit that suits, such as "8.4 ms".
func Duration(ns int64) string {
	for _, u := range [...]struct {
		from, unit float64
		format     string
	}{{2 * 3600e9, 3600e9, "%.1f h"}, {120e9, 60e9, "%.1f min"}, {1e9, 1e9, "%.3g s"}, {1e6, 1e6, "%.3g ms"}, {1e3, 1e3, "%.3g us"}} {
		if float64(ns) >= u.from {
			return fmt.Sprintf(u.format, float64(ns)/u.unit)
		}
	}
	return fmt.Sprintf("%d ns", ns)
}

func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func percent(part, of uint64) string {
	return fmt.Sprintf("%.3g %%", 100*float64(part)/float64(max(of, 1)))
}
