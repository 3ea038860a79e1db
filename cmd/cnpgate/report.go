package main

import (
	"errors"
	"io"
	"os"

	"github.com/cnpgate/cnpgate/control/report"
)

// writeReport writes a report to a file, or to w where no file is named.
func writeReport(w io.Writer, path string, r *report.Report) error {
	if path == "" {
		return r.Write(w)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(r.Write(file), file.Close())
}
