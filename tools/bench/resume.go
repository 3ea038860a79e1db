package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// A long run can be interrupted and resumed, or repeated in part: its result is in a file after each group.

// load adds the rows of an earlier run on the same machine with the same settings, if there is one.
func (r *result) load(path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var earlier result
	if err == nil {
		err = json.Unmarshal(text, &earlier)
	}
	if err != nil {
		return fmt.Errorf("%s: %w; remove it to begin anew", path, err)
	}
	now := r.Machine
	now.Load = earlier.Machine.Load
	if now != earlier.Machine {
		return fmt.Errorf("%s: its rows are of another machine or other settings (%s); remove it to begin anew", path, earlier.Machine.String())
	}
	r.Rows, r.Machine = earlier.Rows, earlier.Machine
	return nil
}

// save replaces the file by the result so far.
func (r *result) save(path string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// has returns whether a row has a figure.
func (r *result) has(name string) bool {
	x := r.row(name)
	return x != nil && x.Error == ""
}

// put adds rows in place of those of the same names, in the order of the groups.
func (r *result) put(rows []row) {
	place := map[string]int{}
	for _, g := range append(groups(), peerGroups()...) {
		for _, x := range g.rows {
			place[x.Name] = len(place)
		}
	}
	for _, x := range rows {
		if old := r.row(x.Name); old != nil {
			*old = x
		} else {
			r.Rows = append(r.Rows, x)
		}
	}
	slices.SortStableFunc(r.Rows, func(a, b row) int { return place[a.Name] - place[b.Name] })
}
