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

func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func percent(part, of uint64) string {
	return fmt.Sprintf("%.3g %%", 100*float64(part)/float64(max(of, 1)))
}
