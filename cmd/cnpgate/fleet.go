package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/columns"
	"github.com/cnpgate/cnpgate/control/fleetlink"
)

func printFleetStatus(to io.Writer, s *fleetlink.FleetStatus) error {
	if !s.Enabled {
		_, err := fmt.Fprintln(to, "The configuration has no fleet.")
		return err
	}
	fmt.Fprintf(to, "%s in site %s\n", s.Name, s.Site)
	if err := printTable(to, api.Members, s.Members); err != nil {
		return err
	}
	fmt.Fprintf(to, "asks for the flows of %d pairs of hosts, is asked for %d; knows %d flows of others, keeps %d pairs for successors\n",
		s.Shares.Wants, s.Shares.Wanted, s.Shares.RemoteFlows, s.Shares.Pairs)
	if err := printTable(to, api.Connections, s.Connections); err != nil {
		return err
	}
	_, err := fmt.Fprintf(to, "refused: %s; dropped: %d received, %d to be sent\n", columns.CountsText(s.Refused), s.Counters["dropped_in"], s.Counters["dropped_out"])
	return err
}

// printFleet prints a resource of all gateways of the fleet, and episodes from their stream, where those of a gateway that is gone are, too. A gateway that doesn't
// answer is named, and an error.
func (f *showFlags) printFleet(ctx context.Context, s showable, client *api.Client, to io.Writer) error {
	if s.resource == api.EpisodesPath {
		return f.print(ctx, printed(api.FleetEpisodesPath, printFleetEpisodes), client, to)
	}
	path := api.FleetAnswersPath + "?path=" + url.QueryEscape(s.resource)
	return f.print(ctx, judged(path, func(to io.Writer, all *api.FleetAnswers) error {
		var failed []error
		for _, name := range slices.Sorted(maps.Keys(all.Answers)) {
			text, err := json.Marshal(all.Answers[name])
			if err != nil {
				return err
			}
			fmt.Fprintf(to, "%s:\n", name)
			if err := s.render(to, text); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", name, err))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(all.Missing)) {
			fmt.Fprintf(to, "%s:\nno answer: %s\n", name, all.Missing[name])
		}
		return errors.Join(append(failed, whoIsMissing(all))...)
	}, whoIsMissing), client, to)
}

// whoIsMissing is an error if gateways of the fleet don't answer.
func whoIsMissing(all *api.FleetAnswers) error {
	if len(all.Missing) == 0 {
		return nil
	}
	return &exitError{fmt.Errorf("%d gateways of the fleet don't answer: %s", len(all.Missing), strings.Join(slices.Sorted(maps.Keys(all.Missing)), ", ")), 1}
}

func printFleetEpisodes(to io.Writer, all *api.FleetEpisodes) error {
	if len(all.Episodes) == 0 {
		_, err := fmt.Fprintln(to, "no congestion that is still in the stream")
		return err
	}
	for i := range all.Episodes {
		fmt.Fprintf(to, "%s ", all.Episodes[i].Gateway)
		if err := printEpisode(to, &all.Episodes[i].Episode); err != nil {
			return err
		}
	}
	return nil
}
