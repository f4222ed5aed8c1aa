package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
)

var completionCommand = command{
	name: "completion", summary: "print completion for a shell", args: "bash|zsh|fish",
	words: func() []string { return []string{"bash", "zsh", "fish"} },
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
				script = zshCompletion()
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

// helpSummary is about the only command that is none of commands.
const helpSummary = "explain a command"

// wordsFor returns what a flag's value is one of, as the shell writes it, or nothing.
// listed makes a list of what a shell command prints.
func wordsFor(f *flag.Flag, listed string) string {
	if fixed, ok := f.Value.(interface{ choices() []string }); ok {
		return strings.Join(fixed.choices(), " ")
	}
	if name, _ := flag.UnquoteUsage(f); name == "interface" {
		return fmt.Sprintf(listed, "ls /sys/class/net")
	}
	return ""
}

// isAddress says that a flag's value is where an endpoint is, of which a shell knows nothing: no file is meant.
func isAddress(f *flag.Flag) bool {
	name, _ := flag.UnquoteUsage(f)
	return name == "URL" || name == "address"
}

func bashCompletion() string {
	names := strings.Join(append(commandNames(), "help"), " ")
	var flags, values, arguments strings.Builder
	for _, c := range commands {
		var all []string
		fs, _ := c.flagSet()
		fs.VisitAll(func(f *flag.Flag) {
			all = append(all, dashes(f.Name))
			if words := wordsFor(f, "$(%s)"); words != "" {
				fmt.Fprintf(&values, "    %q,%s) words=\"%s\" ;;\n", c.name, dashes(f.Name), words)
			} else if isAddress(f) {
				fmt.Fprintf(&values, "    %q,%s) return ;;\n", c.name, dashes(f.Name))
			}
		})
		fmt.Fprintf(&flags, "    %q) flags=\"%s\" ;;\n", c.name, strings.Join(all, " "))
		if c.words != nil {
			fmt.Fprintf(&arguments, "    %q,2) words=\"%s\" ;;\n", c.name, strings.Join(c.words(), " "))
		}
	}
	var seconds strings.Builder
	for _, name := range commandNames() {
		if parts := wordsAfter(name); parts != nil {
			fmt.Fprintf(&arguments, "    %s,2|help,3|man,3) [ \"${COMP_WORDS[COMP_CWORD-1]}\" = %[1]s ] && words=\"%s\" ;;\n", name, strings.Join(parts, " "))
			fmt.Fprintf(&seconds, "    %s) [ \"$COMP_CWORD\" -gt 2 ] && command=\"%[1]s ${COMP_WORDS[2]}\" ;;\n", name)
		}
	}
	return `_dgrdmacat() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} flags= words=
  COMPREPLY=()
  if [ "$word" = = ]; then # --flag=, which the shell cuts there
    word=
  elif [ "$before" = = ]; then
    before=${COMP_WORDS[COMP_CWORD-2]}
  fi
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W "` + names + `" -- "$word"))
    return
  fi
  case $command in
` + seconds.String() + `  esac
  case $command in
` + flags.String() + `  esac
  case $command,$COMP_CWORD in
    help,2) words="` + names + `" ;;
` + arguments.String() + `  esac
  case $command,$before in
` + values.String() + `  esac
  case $words,$word in
    *,-*) COMPREPLY=($(compgen -W "$flags" -- "$word")) ;;
    ,*) COMPREPLY=($(compgen -f -- "$word")) ;;
    *) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
  esac
}
complete -o filenames -F _dgrdmacat dgrdmacat
`
}

// zshCompletion is bash's. zsh also finds it by itself, as _dgrdmacat in a directory of its
// functions: the first line says what it completes, and the last completes what was asked
// for when zsh read it.
func zshCompletion() string {
	return "#compdef dgrdmacat\nautoload -U +X bashcompinit && bashcompinit\n" + bashCompletion() +
		"if [ \"${funcstack[1]}\" = _dgrdmacat ]; then _bash_complete -o filenames -F _dgrdmacat; fi\n"
}

func fishCompletion() string {
	quote := func(s string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
	}
	var b strings.Builder
	offer := func(name, summary string, words []string) {
		if group, part, two := strings.Cut(name, " "); two {
			others := "; and not __fish_seen_subcommand_from " + strings.Join(wordsAfter(group), " ")
			fmt.Fprintf(&b, "complete -c dgrdmacat -n '%s%s' -f -a %s -d %s\n", fishSeen(group), others, part, quote(summary))
		} else {
			fmt.Fprintf(&b, "complete -c dgrdmacat -n __fish_use_subcommand -f -a %s -d %s\n", name, quote(summary))
		}
		if words != nil {
			fmt.Fprintf(&b, "complete -c dgrdmacat -n '%s' -f -a %s\n", fishSeen(name), quote(strings.Join(words, " ")))
		}
	}
	for _, name := range commandNames() {
		if about := groups[name]; about != "" {
			offer(name, about, nil)
		}
	}
	offer("help", helpSummary, commandNames())
	for _, c := range commands {
		var words []string
		if c.words != nil {
			words = c.words()
		}
		offer(c.name, c.summary, words)
		fs, _ := c.flagSet()
		fs.VisitAll(func(f *flag.Flag) {
			kind := "-l"
			if len(f.Name) == 1 {
				kind = "-s"
			}
			value, text := flag.UnquoteUsage(f)
			if words := wordsFor(f, "(%s)"); words != "" {
				kind = "-x -a " + quote(words) + " " + kind
			} else if isAddress(f) {
				kind = "-x " + kind
			} else if value != "" {
				kind = "-r " + kind
			}
			fmt.Fprintf(&b, "complete -c dgrdmacat -n '%s' %s %s -d %s\n", fishSeen(c.name), kind, f.Name, quote(strings.ReplaceAll(text, "\n", " ")))
		})
	}
	return b.String()
}

// fishSeen is fish's condition that a command is typed. A command may have the name that another one has in its group.
func fishSeen(name string) string {
	first, second, two := strings.Cut(name, " ")
	seen := "__fish_seen_subcommand_from " + first
	if two {
		return seen + "; and __fish_seen_subcommand_from " + second
	}
	for _, other := range commandNames() {
		if slices.Contains(wordsAfter(other), name) {
			seen += "; and not __fish_seen_subcommand_from " + other
		}
	}
	return seen
}
