module @quantized {
  func.func public @main(%arg0: tensor<2x8xbf16>, %arg1: tensor<4x8xi8>, %arg2: tensor<4xf32>) -> tensor<2x4xbf16> {
    %0 = stablehlo.convert %arg0 : (tensor<2x8xbf16>) -> tensor<2x8xf32>
    %1 = stablehlo.abs %0 : tensor<2x8xf32>
    %2 = stablehlo.constant dense<0xFF800000> : tensor<f32> // -Inf
    %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.maximum across dimensions = [1] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2xf32>
    %4 = stablehlo.reshape %3 : (tensor<2xf32>) -> tensor<2x1xf32>
    %5 = stablehlo.constant dense<0x03800000> : tensor<f32> // 7.523164e-37
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<2x1xf32>
    %7 = stablehlo.compare LT, %4, %6 : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xi1>
    %8 = stablehlo.constant dense<0.0> : tensor<f32>
    %9 = stablehlo.constant dense<127.0> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<f32>) -> tensor<2x1xf32>
    %11 = stablehlo.divide %10, %4 : tensor<2x1xf32>
    %12 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<f32>) -> tensor<2x1xf32>
    %13 = stablehlo.select %7, %12, %11 : tensor<2x1xi1>, tensor<2x1xf32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x8xf32>
    %15 = stablehlo.multiply %0, %14 : tensor<2x8xf32>
    %16 = stablehlo.constant dense<12582912.0> : tensor<f32>
    %17 = stablehlo.round_nearest_even %15 : tensor<2x8xf32>
    %18 = stablehlo.convert %17 : (tensor<2x8xf32>) -> tensor<2x8xi8>
    %19 = stablehlo.convert %18 : (tensor<2x8xi8>) -> tensor<2x8xi32>
    %20 = stablehlo.convert %arg1 : (tensor<4x8xi8>) -> tensor<4x8xi32>
    %21 = stablehlo.dot_general %19, %20, contracting_dims = [1] x [1] : (tensor<2x8xi32>, tensor<4x8xi32>) -> tensor<2x4xi32>
    %22 = stablehlo.convert %21 : (tensor<2x4xi32>) -> tensor<2x4xf32>
    %23 = stablehlo.is_finite %4 : (tensor<2x1xf32>) -> tensor<2x1xi1>
    %24 = stablehlo.divide %4, %10 : tensor<2x1xf32>
    %25 = stablehlo.constant dense<0x7FC00000> : tensor<f32> // NaN
    %26 = stablehlo.broadcast_in_dim %25, dims = [] : (tensor<f32>) -> tensor<2x1xf32>
    %27 = stablehlo.select %23, %24, %26 : tensor<2x1xi1>, tensor<2x1xf32>
    %28 = stablehlo.select %7, %12, %27 : tensor<2x1xi1>, tensor<2x1xf32>
    %29 = stablehlo.broadcast_in_dim %28, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x4xf32>
    %30 = stablehlo.multiply %22, %29 : tensor<2x4xf32>
    %31 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
    %32 = stablehlo.multiply %30, %31 : tensor<2x4xf32>
    %33 = stablehlo.convert %32 : (tensor<2x4xf32>) -> tensor<2x4xbf16>
    return %33 : tensor<2x4xbf16>
  }
}
