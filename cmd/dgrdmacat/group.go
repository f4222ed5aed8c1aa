package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Names of some commands have two words, as "nfs serve": the first is that of a group.

// groups says what the commands of each group are about.
var groups = map[string]string{
	"nfs": "Files of another machine by NFS version 3, over RDMA and over TCP.",
}

// wordsAfter returns the second words of a group's commands, or none.
func wordsAfter(group string) (parts []string) {
	for _, c := range commands {
		if first, second, two := strings.Cut(c.name, " "); two && first == group {
			parts = append(parts, second)
		}
	}
	return parts
}

// commandNames are the first words of all commands.
func commandNames() (names []string) {
	for _, c := range commands {
		if first, _, _ := strings.Cut(c.name, " "); !slices.Contains(names, first) {
			names = append(names, first)
		}
	}
	return names
}

// find returns the command that arguments begin with, and the others.
func find(args []string) (*command, []string, error) {
	name, rest := args[0], args[1:]
	if parts := wordsAfter(name); parts != nil {
		if len(rest) == 0 {
			return nil, nil, badUsage("%s what? There are %s", name, strings.Join(parts, ", "))
		}
		if !slices.Contains(parts, rest[0]) {
			return nil, nil, badUsage("no command \"%s %s\"%s \"dgrdmacat %s -h\" lists its commands", name, rest[0], didYouMean(closest(rest[0], parts)), name)
		}
		name, rest = name+" "+rest[0], rest[1:]
	}
	for _, c := range commands {
		if c.name == name {
			return c, rest, nil
		}
	}
	return nil, nil, badUsage("no command %q%s \"dgrdmacat\" lists its commands", name, didYouMean(closest(name, commandNames())))
}

// groupExamples show a newcomer a group's commands.
var groupExamples = map[string]string{
	"nfs": `  dgrdmacat nfs demo                             begin here: it needs nothing else
  dgrdmacat nfs serve DIR                        prints how Linux mounts DIR, until ^C
  dgrdmacat nfs ls rdma:HOST                     what HOST exports
  dgrdmacat nfs get rdma:HOST/export/dir/file    over RDMA; tcp:HOST/... is over TCP
`,
}

// groupUsage lists the commands of a group.
func groupUsage(w io.Writer, group string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: dgrdmacat %s COMMAND [flags] [arguments]; \"dgrdmacat %s COMMAND -h\" explains one\n\n%s\n\n", group, group, groups[group])
	for _, c := range commands {
		if first, second, two := strings.Cut(c.name, " "); two && first == group {
			fmt.Fprintf(&b, "  %-10s  %s\n", second, c.summary)
		}
	}
	fmt.Fprintf(&b, "\n%s", groupExamples[group])
	_, err := io.WriteString(w, b.String())
	return err
}

// hyphened is the name of a command in one word, as that of its man page.
func (c *command) hyphened() string { return strings.ReplaceAll(c.name, " ", "-") }
