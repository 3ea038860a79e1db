package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/cnpgate/cnpgate/control/api"
	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
)

// notifyMode is another name of the mode send.
const notifyMode = "notify"

// The settings that set changes, and the words of each.
const modeSetting, levelSetting = "mode", "log-level"

var (
	settings     = []string{modeSetting, levelSetting}
	settingWords = map[string][]string{modeSetting: config.Modes, levelSetting: config.LogLevels}
)

func setCommand() *cobra.Command {
	var f showFlags
	var port string
	c := &cobra.Command{
		Use:   "set [mode [observe|send] [--port NAME] | log-level [LEVEL]] [-o text|json] [--socket PATH | --config FILE]",
		Short: "Print or change the mode and the log level of the running gateway, until the next reload",
		Long: `Without a value it prints those in force. With mode observe, the gateway only counts what it would notify, mark CE and pace because of the port's queue; with send it
does so. log-level is the lowest level that is logged: debug, info, warn or error. Both are in force until the next reload, which
restores notifications.mode and management.log_level of the configuration; until then cnpgate show health says that a mode differs.`,
		SuggestFor:        []string{"loglevel"},
		ValidArgsFunction: completeSetting,
		RunE:              func(c *cobra.Command, args []string) error { return f.set(c, port, args) },
	}
	c.Args = func(c *cobra.Command, args []string) error { return checkSetting(c, port, args) }
	c.Flags().StringVar(&port, "port", "", "the mode only of this port (default all)")
	outputFlag(c, &f.output)
	return f.ofGateway(c)
}

func completeSetting(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return settingWords[args[0]], cobra.ShellCompDirectiveNoFileComp
	}
	return settings, cobra.ShellCompDirectiveNoFileComp
}

// checkSetting checks a setting and its value, each of which may be missing.
func checkSetting(c *cobra.Command, port string, args []string) error {
	if len(args) > 2 {
		return seeHelp(c, fmt.Errorf("%d values are given; expected one at most", len(args)-1))
	}
	if len(args) > 0 {
		if err := yamldoc.CheckWord(args[0], settings); err != nil {
			return fmt.Errorf("setting %w", err)
		}
	}
	if port != "" && (len(args) < 2 || args[0] != modeSetting) {
		return seeHelp(c, fmt.Errorf("--port is given without a mode; expected one: %s", yamldoc.Either(config.Modes)))
	}
	if len(args) < 2 || args[0] == modeSetting && args[1] == notifyMode {
		return nil
	}
	if err := yamldoc.CheckWord(args[1], settingWords[args[0]]); err != nil {
		return fmt.Errorf("%s %w", args[0], err)
	}
	return nil
}

// inForce is what set prints: what was asked for.
type inForce struct {
	*api.Modes
	*api.LogLevel
}

func (f *showFlags) set(c *cobra.Command, port string, args []string) error {
	setting, value := "", ""
	if len(args) > 0 {
		setting = args[0]
	}
	if len(args) > 1 {
		value = args[1]
	}
	return f.ask(c, func(ctx context.Context, client *api.Client) (err error) {
		var now inForce
		if setting != levelSetting {
			if value == notifyMode {
				value = config.ModeSend
			}
			now.Modes, err = changed[api.Modes](ctx, client, api.ModePath, value, api.ModeRequest{Mode: value, Port: port})
		}
		if err == nil && setting != modeSetting {
			now.LogLevel, err = changed[api.LogLevel](ctx, client, api.LogLevelPath, value, api.LogLevelRequest{LogLevel: value})
		}
		switch {
		case err != nil:
			return err
		case f.output == "json":
			return json.NewEncoder(c.OutOrStdout()).Encode(now)
		}
		return now.print(ctx, client, paperOf(c.OutOrStdout(), false))
	})
}

// changed is the answer to the request to change what a path has, or of what it has if there is no value.
func changed[A any](ctx context.Context, client *api.Client, path, value string, request any) (*A, error) {
	if value == "" {
		return api.Get[A](ctx, client, path)
	}
	return api.Do[A](ctx, client, http.MethodPut, path, request)
}

func (n *inForce) print(ctx context.Context, client *api.Client, to io.Writer) error {
	if n.Modes != nil {
		if err := printTable(to, api.PortModes, n.Ports); err != nil {
			return err
		}
	}
	if l := n.LogLevel; l != nil {
		text := "log level " + l.LogLevel
		if l.LogLevel != l.Configured {
			text += fmt.Sprintf(" (%s after a reload)", l.Configured)
		}
		if _, err := fmt.Fprintln(to, text); err != nil || n.Modes == nil {
			return err
		}
	}
	return printNotices(ctx, client, to, "")
}
