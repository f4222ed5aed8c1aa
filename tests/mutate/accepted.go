package main

import (
	"fmt"
	"strings"
)

// parseAccepted reads the survivors that are accepted: a line that names each, as it
// was printed but without the position, and under it, indented, the reason. Lines
// that begin with # say something to the reader.
func parseAccepted(text string) (map[string]string, error) {
	known := map[string]string{}
	key := ""
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, " \n")
		switch {
		case line == "", strings.HasPrefix(line, "#"):
		case line[0] != ' ' && line[0] != '\t':
			if key != "" && known[key] == "" {
				return nil, fmt.Errorf("line %d: no reason is given for %s", number, key)
			}
			key = line
			if !strings.Contains(key, arrow) {
				return nil, fmt.Errorf("line %d is no mutant: need PACKAGE FUNCTION: SOURCE%sCHANGE", number, arrow)
			}
			if _, twice := known[key]; twice {
				return nil, fmt.Errorf("line %d: %s is there twice", number, key)
			}
			known[key] = ""
		case key == "":
			return nil, fmt.Errorf("line %d: a reason for nothing", number)
		default:
			known[key] = strings.TrimSpace(known[key] + " " + strings.TrimSpace(line))
		}
	}
	if key != "" && known[key] == "" {
		return nil, fmt.Errorf("no reason is given for %s", key)
	}
	return known, nil
}
