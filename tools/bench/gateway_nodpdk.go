//go:build nodpdk

package main

import "errors"

var errNoDPDK = errors.New("built without libdpdk (tag nodpdk)")

func gateway([]string) error { return errNoDPDK }

func latency([]string) error { return errNoDPDK }

func running([]string) error { return errNoDPDK }

func (*bench) fleetOfTwo() (sections [2]string, err error) { return sections, errNoDPDK }
