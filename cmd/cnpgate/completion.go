package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// completionCommand takes the place of cobra's, which has a command for each shell.
func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:                   "completion bash|fish|zsh",
		Short:                 "Print a script by which a shell completes commands and flags",
		Long:                  `Prints the script. Where it belongs depends on the shell; the package has installed all of them.`,
		ValidArgs:             []string{"bash", "fish", "zsh"},
		DisableFlagsInUseLine: true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 || cobra.OnlyValidArgs(c, args) != nil {
				return seeHelp(c, errors.New("expected one shell: bash, fish or zsh"))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			switch out := c.OutOrStdout(); args[0] {
			case "bash":
				return c.Root().GenBashCompletionV2(out, true)
			case "fish":
				return c.Root().GenFishCompletion(out, true)
			default:
				return c.Root().GenZshCompletion(out)
			}
		},
	}
}
