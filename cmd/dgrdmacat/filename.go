package main

import "errors"

// fileFlag is a flag whose value is the name of a file; empty: not given.
type fileFlag string

func (f *fileFlag) String() string { return string(*f) }

// Set implements [flag.Value]. An empty name is likely a variable that is not set.
func (f *fileFlag) Set(name string) error {
	if name == "" {
		return errors.New("the name of a file is empty")
	}
	*f = fileFlag(name)
	return nil
}
