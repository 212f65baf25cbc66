package imageio

import (
	"bytes"
	"encoding/binary"
	"image"
)

// Cameras store a picture as the sensor saw it, and in Exif data how to turn it: orientation 1 is upright, 2 to 8 are
// the other turns and mirror images of a rectangle. Damaged Exif data counts as upright.

// exifOrientation finds the orientation in a TIFF structure.
// Source: Exif 2.32, 4.6.4, tag 0x0112.
func exifOrientation(tiff []byte) int {
	if len(tiff) < 8 {
		return 1
	}
	var order binary.ByteOrder
	switch string(tiff[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return 1
	}
	at := uint64(order.Uint32(tiff[4:]))
	if at+2 > uint64(len(tiff)) {
		return 1
	}
	entries := tiff[at+2:]
	for n := order.Uint16(tiff[at:]); n > 0 && len(entries) >= 12; n, entries = n-1, entries[12:] {
		const tag, short = 0x0112, 3
		if order.Uint16(entries) == tag && order.Uint16(entries[2:]) == short {
			if v := int(order.Uint16(entries[8:])); v >= 1 && v <= 8 {
				return v
			}
			return 1
		}
	}
	return 1
}

var exifHeader = []byte("Exif\x00\x00")

// jpegOrientation looks into the APP1 segment of a JPEG file.
func jpegOrientation(b []byte) int {
	for b = b[2:]; len(b) >= 4 && b[0] == 0xff; {
		const app1, startOfScan = 0xe1, 0xda
		kind, size := b[1], int(binary.BigEndian.Uint16(b[2:]))
		if kind == startOfScan || size < 2 || 2+size > len(b) {
			return 1
		}
		if body := b[4 : 2+size]; kind == app1 && bytes.HasPrefix(body, exifHeader) {
			return exifOrientation(body[len(exifHeader):])
		}
		b = b[2+size:]
	}
	return 1
}

// pngOrientation looks into the eXIf chunk of a PNG file.
func pngOrientation(b []byte) int {
	for b = b[len(pngSignature):]; len(b) >= 12; {
		size := uint64(binary.BigEndian.Uint32(b))
		if 12+size > uint64(len(b)) {
			return 1
		}
		if string(b[4:8]) == "eXIf" {
			return exifOrientation(b[8 : 8+size])
		}
		b = b[12+size:]
	}
	return 1
}

// webpOrientation looks into the EXIF chunk of a WebP file.
func webpOrientation(b []byte) int {
	for b = b[12:]; len(b) >= 8; {
		size := uint64(binary.LittleEndian.Uint32(b[4:]))
		padded := size + size&1
		if 8+size > uint64(len(b)) {
			return 1
		}
		if string(b[:4]) == "EXIF" {
			return exifOrientation(bytes.TrimPrefix(b[8:8+size], exifHeader))
		}
		b = b[min(8+padded, uint64(len(b))):]
	}
	return 1
}

// upright returns m turned according to orientation.
func upright(m image.Image, orientation int) image.Image {
	if orientation < 2 || orientation > 8 {
		return m
	}
	src := Pixels(m)
	h, w := src.Shape[1], src.Shape[2]
	out := image.NewNRGBA(image.Rect(0, 0, w, h))
	if orientation >= 5 { // rows become columns
		out = image.NewNRGBA(image.Rect(0, 0, h, w))
	}
	for y := range h {
		for x := range w {
			var ox, oy int
			switch orientation {
			case 2: // mirrored left to right
				ox, oy = w-1-x, y
			case 3: // upside down
				ox, oy = w-1-x, h-1-y
			case 4: // mirrored top to bottom
				ox, oy = x, h-1-y
			case 5: // mirrored along the main diagonal
				ox, oy = y, x
			case 6: // to be turned clockwise
				ox, oy = h-1-y, x
			case 7: // mirrored along the other diagonal
				ox, oy = h-1-y, w-1-x
			case 8: // to be turned counterclockwise
				ox, oy = y, w-1-x
			}
			d, s := out.Pix[out.PixOffset(ox, oy):][:4], src.Data[(y*w+x)*3:][:3]
			d[0], d[1], d[2], d[3] = s[0], s[1], s[2], 255
		}
	}
	return out
}
