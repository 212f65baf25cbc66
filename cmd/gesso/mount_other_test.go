//go:build !linux

package main

import "errors"

func mountTiny(string) error { return errors.ErrUnsupported }

func unmount(string) {}
