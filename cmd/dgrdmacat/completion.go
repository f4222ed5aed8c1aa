package main

import (
	"context"
	"flag"
	"fmt"
	"strings"
)

var completionCommand = command{
	name: "completion", summary: "print completion for a shell", args: "bash|zsh|fish",
	about: `Prints what makes the shell complete commands and flags:

  source <(dgrdmacat completion bash)
  source <(dgrdmacat completion zsh)
  dgrdmacat completion fish | source`,
	flags: func(*flag.FlagSet) action {
		return func(_ context.Context, std *stdio, args []string) error {
			if len(args) != 1 {
				return badUsage("which shell: bash, zsh or fish?")
			}
			var script string
			switch args[0] {
			case "bash":
				script = bashCompletion()
			case "zsh":
				script = "autoload -U +X bashcompinit && bashcompinit\n" + bashCompletion()
			case "fish":
				script = fishCompletion()
			default:
				return badUsage("no completion for %q: there are bash, zsh and fish", args[0])
			}
			_, err := fmt.Fprint(std.out, script)
			return err
		}
	},
}

func bashCompletion() string {
	var names []string
	var cases strings.Builder
	for _, c := range commands {
		names = append(names, c.name)
		var flags []string
		fs, _ := c.flagSet()
		fs.VisitAll(func(f *flag.Flag) { flags = append(flags, dashes(f.Name)) })
		fmt.Fprintf(&cases, "    %s) words=%q ;;\n", c.name, strings.Join(flags, " "))
	}
	return `_dgrdmacat() {
  local word=${COMP_WORDS[COMP_CWORD]} words=
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W "` + strings.Join(names, " ") + `" -- "$word"))
    return
  fi
  case ${COMP_WORDS[1]} in
` + cases.String() + `  esac
  case $word in
    -*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}
complete -o filenames -F _dgrdmacat dgrdmacat
`
}

func fishCompletion() string {
	quote := func(s string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
	}
	var b strings.Builder
	for _, c := range commands {
		fmt.Fprintf(&b, "complete -c dgrdmacat -n __fish_use_subcommand -f -a %s -d %s\n", c.name, quote(c.summary))
		fs, _ := c.flagSet()
		fs.VisitAll(func(f *flag.Flag) {
			kind := "-l"
			if len(f.Name) == 1 {
				kind = "-s"
			}
			value, text := flag.UnquoteUsage(f)
			if value != "" {
				kind = "-r " + kind
			}
			fmt.Fprintf(&b, "complete -c dgrdmacat -n '__fish_seen_subcommand_from %s' %s %s -d %s\n", c.name, kind, f.Name, quote(strings.ReplaceAll(text, "\n", " ")))
		})
	}
	return b.String()
}
