package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cnpgate/cnpgate/control/report"
)

// printHistograms prints a table with a line for each histogram that has values. It prints bounds of buckets, as the values themselves aren't known.
func printHistograms(to io.Writer, all []report.Histogram) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	header := "\nHISTOGRAM\tPORT\tCLASS\tWORKER\tVALUES\tMEAN\tP50 <=\tP99 <=\tMAX <=\n"
	for i := range all {
		h := &all[i]
		if h.Count == 0 {
			continue
		}
		print := unitOf(h.Name)
		_, err := fmt.Fprintf(w, "%s%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", header, h.Name, cmp.Or(h.Port, "-"), cmp.Or(h.Class, "-"), cmp.Or(h.Worker, "-"), h.Count,
			print(h.Sum/h.Count), bound(h, 0.5, print), bound(h, 0.99, print), bound(h, 1, print))
		if err != nil {
			return err
		}
		header = ""
	}
	return w.Flush()
}

// unitOf is how a histogram's values are printed.
func unitOf(name string) func(uint64) string {
	if strings.HasSuffix(name, "_nanoseconds") {
		return func(v uint64) string { return time.Duration(v).String() }
	}
	return func(v uint64) string { return strconv.FormatUint(v, 10) }
}

// bound is the bound that a part of the values doesn't exceed, "-" if there is none.
func bound(h *report.Histogram, part float64, print func(uint64) string) string {
	v, ok := h.Quantile(part)
	if !ok {
		return "-"
	}
	return print(v)
}
