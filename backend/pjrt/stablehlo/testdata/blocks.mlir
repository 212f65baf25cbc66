module @blocks {
  func.func public @main(%arg0: tensor<4x8xbf16>, %arg1: tensor<8x8xbf16>, %arg2: tensor<8xbf16>, %arg3: tensor<8xbf16>, %arg4: tensor<8x8xbf16>, %arg5: tensor<8xbf16>, %arg6: tensor<8xbf16>, %arg7: tensor<8x8xbf16>, %arg8: tensor<8xbf16>, %arg9: tensor<8xbf16>, %arg10: tensor<8x8xbf16>, %arg11: tensor<8xbf16>, %arg12: tensor<8xbf16>, %arg13: tensor<8x8xbf16>, %arg14: tensor<8xbf16>) -> tensor<4x8xbf16> {
    %0 = stablehlo.convert %arg2 : (tensor<8xbf16>) -> tensor<8xf32>
    %1 = stablehlo.tanh %0 : tensor<8xf32>
    %2 = stablehlo.convert %1 : (tensor<8xf32>) -> tensor<8xbf16>
    %3 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xf32>
    %4 = stablehlo.convert %3 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
    %5 = stablehlo.convert %4 : (tensor<4x8xbf16>) -> tensor<4x8xf32>
    %6 = stablehlo.multiply %5, %5 : tensor<4x8xf32>
    %7 = stablehlo.constant dense<0.0> : tensor<f32>
    %8 = stablehlo.reduce(%6 init: %7) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %9 = stablehlo.reshape %8 : (tensor<4xf32>) -> tensor<4x1xf32>
    %10 = stablehlo.constant dense<8.0> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %12 = stablehlo.divide %9, %11 : tensor<4x1xf32>
    %13 = stablehlo.constant dense<0x358637BD> : tensor<f32> // 1e-06
    %14 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %15 = stablehlo.add %12, %14 : tensor<4x1xf32>
    %16 = stablehlo.rsqrt %15 : tensor<4x1xf32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
    %18 = stablehlo.multiply %5, %17 : tensor<4x8xf32>
    %19 = stablehlo.convert %arg3 : (tensor<8xbf16>) -> tensor<8xf32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
    %21 = stablehlo.multiply %18, %20 : tensor<4x8xf32>
    %22 = stablehlo.convert %21 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
    %23 = stablehlo.dot_general %22, %arg4, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xf32>
    %24 = stablehlo.convert %arg5 : (tensor<8xbf16>) -> tensor<8xf32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
    %26 = stablehlo.add %23, %25 : tensor<4x8xf32>
    %27 = stablehlo.convert %26 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
    %28 = stablehlo.convert %27 : (tensor<4x8xbf16>) -> tensor<4x8xf32>
    %29 = stablehlo.logistic %28 : tensor<4x8xf32>
    %30 = stablehlo.convert %29 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
    %31 = stablehlo.multiply %27, %30 : tensor<4x8xbf16>
    %32 = stablehlo.broadcast_in_dim %2, dims = [1] : (tensor<8xbf16>) -> tensor<4x8xbf16>
    %33 = stablehlo.multiply %31, %32 : tensor<4x8xbf16>
    %34 = stablehlo.abs %33 : tensor<4x8xbf16>
    %35 = stablehlo.add %4, %34 : tensor<4x8xbf16>
    %36 = call @block0(%35, %arg6, %arg7, %arg8, %2) : (tensor<4x8xbf16>, tensor<8xbf16>, tensor<8x8xbf16>, tensor<8xbf16>, tensor<8xbf16>) -> tensor<4x8xbf16>
    %37 = call @block0(%36, %arg9, %arg10, %arg11, %2) : (tensor<4x8xbf16>, tensor<8xbf16>, tensor<8x8xbf16>, tensor<8xbf16>, tensor<8xbf16>) -> tensor<4x8xbf16>
    %38 = call @block0(%37, %arg12, %arg13, %arg14, %2) : (tensor<4x8xbf16>, tensor<8xbf16>, tensor<8x8xbf16>, tensor<8xbf16>, tensor<8xbf16>) -> tensor<4x8xbf16>
    %39 = stablehlo.dot_general %38, %arg1, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xf32>
    %40 = stablehlo.convert %39 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
    return %40 : tensor<4x8xbf16>
  }
  func.func private @block0(%arg0: tensor<4x8xbf16>, %arg1: tensor<8xbf16>, %arg2: tensor<8x8xbf16>, %arg3: tensor<8xbf16>, %arg4: tensor<8xbf16>) -> tensor<4x8xbf16> {
    %0 = stablehlo.convert %arg0 : (tensor<4x8xbf16>) -> tensor<4x8xf32>
    %1 = stablehlo.multiply %0, %0 : tensor<4x8xf32>
    %2 = stablehlo.constant dense<0.0> : tensor<f32>
    %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %4 = stablehlo.reshape %3 : (tensor<4xf32>) -> tensor<4x1xf32>
    %5 = stablehlo.constant dense<8.0> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %7 = stablehlo.divide %4, %6 : tensor<4x1xf32>
    %8 = stablehlo.constant dense<0x358637BD> : tensor<f32> // 1e-06
    %9 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<f32>) -> tensor<4x1xf32>
    %10 = stablehlo.add %7, %9 : tensor<4x1xf32>
    %11 = stablehlo.rsqrt %10 : tensor<4x1xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
    %13 = stablehlo.multiply %0, %12 : tensor<4x8xf32>
    %14 = stablehlo.convert %arg1 : (tensor<8xbf16>) -> tensor<8xf32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
    %16 = stablehlo.multiply %13, %15 : tensor<4x8xf32>
    %17 = stablehlo.convert %16 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
    %18 = stablehlo.dot_general %17, %arg2, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xf32>
    %19 = stablehlo.convert %arg3 : (tensor<8xbf16>) -> tensor<8xf32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
    %21 = stablehlo.add %18, %20 : tensor<4x8xf32>
    %22 = stablehlo.convert %21 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
    %23 = stablehlo.convert %22 : (tensor<4x8xbf16>) -> tensor<4x8xf32>
    %24 = stablehlo.logistic %23 : tensor<4x8xf32>
    %25 = stablehlo.convert %24 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
    %26 = stablehlo.multiply %22, %25 : tensor<4x8xbf16>
    %27 = stablehlo.broadcast_in_dim %arg4, dims = [1] : (tensor<8xbf16>) -> tensor<4x8xbf16>
    %28 = stablehlo.multiply %26, %27 : tensor<4x8xbf16>
    %29 = stablehlo.abs %28 : tensor<4x8xbf16>
    %30 = stablehlo.add %arg0, %29 : tensor<4x8xbf16>
    return %30 : tensor<4x8xbf16>
  }
}
