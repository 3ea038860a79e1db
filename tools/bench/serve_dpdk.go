//go:build !nodpdk

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// serve makes a program a measured process: it does the runs that its input requests, until the input ends.
func serve(run func(time.Duration) (*sample, error)) error {
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var ms int64
		if _, err := fmt.Sscanf(in.Text(), "run %d", &ms); err != nil {
			return fmt.Errorf("asked %q", in.Text())
		}
		s, err := run(time.Duration(ms) * time.Millisecond)
		if err != nil {
			return err
		}
		text, err := json.Marshal(s)
		if err != nil {
			return err
		}
		fmt.Println(string(text))
	}
	return nil
}
